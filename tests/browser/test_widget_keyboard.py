"""The keys of the search box, as described in the ARIA Authoring Practices for comboboxes with a list and modal
dialogs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.browser.stub import Stub
from tests.browser.test_widget import Visitor
from tests.browser.test_widget_box import finding_stub, finds, focused, open_page, press

pytestmark = pytest.mark.browser

STATE = """
    const root = document.querySelector("#site-search").shadowRoot, input = root.querySelector("input");
    const chosen = root.querySelector('[role=option][aria-selected="true"]');
    return { focus: root.activeElement?.localName, open: input.getAttribute("aria-expanded") === "true",
      chosen: chosen?.id ?? null, told: input.getAttribute("aria-activedescendant"),
      at: [input.selectionStart, input.selectionEnd], value: input.value,
      seen: root.querySelector("#results").checkVisibility() }"""


class Keys:
    """Keys as WebDriver sends them, so that the rows are readable without selenium."""

    BACKSPACE, TAB, ENTER, SHIFT, ESCAPE = "\ue003", "\ue004", "\ue007", "\ue008", "\ue00c"
    END, HOME, DELETE = "\ue010", "\ue011", "\ue017"
    ARROW_LEFT, ARROW_UP, ARROW_RIGHT, ARROW_DOWN = "\ue012", "\ue013", "\ue014", "\ue015"


class Row(NamedTuple):
    """A rule of the practices: the keys before it, the key itself, and the expected state afterwards."""

    says: str
    before: tuple[str, ...]
    key: tuple[str, ...]
    then: dict[str, Any]


COMBOBOX = [
    Row("the first option is chosen", (), (), {"chosen": "hit-0"}),
    Row("down enters a list without a choice at its first", (Keys.ESCAPE,), (Keys.ARROW_DOWN,), {"chosen": "hit-0"}),
    Row("down goes to the next option", (), (Keys.ARROW_DOWN,), {"chosen": "hit-1"}),
    Row("down goes from the last to the first", (Keys.ARROW_UP,), (Keys.ARROW_DOWN,), {"chosen": "hit-0"}),
    Row("up enters a list without a choice at its last", (Keys.ESCAPE,), (Keys.ARROW_UP,), {"chosen": "hit-1"}),
    Row("up goes to the option before", (Keys.ARROW_UP,), (Keys.ARROW_UP,), {"chosen": "hit-0"}),
    Row("up goes from the first to the last", (), (Keys.ARROW_UP,), {"chosen": "hit-1"}),
    Row("escape closes the list and keeps the text", (), (Keys.ESCAPE,), {"open": False, "value": "open"}),
    Row("escape leaves nothing chosen", (Keys.ARROW_DOWN,), (Keys.ESCAPE,), {"chosen": None, "open": False}),
    Row("down opens a closed list", (Keys.ESCAPE,), (Keys.ARROW_DOWN,), {"open": True, "chosen": "hit-0"}),
    Row("home moves the caret to the start", (Keys.ARROW_DOWN,), (Keys.HOME,), {"at": [0, 0]}),
    Row("end moves the caret to the end", (Keys.HOME,), (Keys.END,), {"at": [4, 4]}),
    Row("left moves the caret", (Keys.ARROW_DOWN,), (Keys.ARROW_LEFT,), {"at": [3, 3]}),
    Row("right moves the caret", (Keys.HOME,), (Keys.ARROW_RIGHT,), {"at": [1, 1]}),
    Row("backspace deletes before the caret", (Keys.ARROW_DOWN,), (Keys.BACKSPACE,), {"value": "ope"}),
    Row("delete deletes after the caret", (Keys.HOME,), (Keys.DELETE,), {"value": "pen"}),
    Row("a character is typed, wherever one was", (Keys.ARROW_DOWN,), ("s",), {"value": "opens"}),
]


@pytest.fixture
def stub() -> Iterator[Stub]:
    with finding_stub() as running:
        yield running


@pytest.fixture
def visitor(browser: Any, stub: Stub, tmp_path: Path) -> Visitor:
    return Visitor(browser, stub.base_url, tmp_path)


@pytest.mark.parametrize("row", COMBOBOX, ids=lambda row: row.says)
def test_field_follows_the_aria_combobox_pattern(stub: Stub, visitor: Visitor, row: Row) -> None:
    open_page(stub, visitor)
    finds(visitor)
    visitor.type(*row.before)
    visitor.type(*row.key)
    state = visitor.driver.execute_script(STATE)
    assert {name: state[name] for name in row.then} == row.then
    assert state["focus"] == "input", "the focus must stay in the field"
    assert state["told"] == state["chosen"], "assistive technology must know which option is selected"
    assert state["seen"] is state["open"]


def test_tab_moves_from_the_field_past_the_options(stub: Stub, visitor: Visitor) -> None:
    open_page(stub, visitor, body='<a id="before" href="#x">x</a>')
    finds(visitor)
    visitor.type(Keys.ARROW_DOWN, Keys.TAB)
    script = "return document.querySelector('#site-search').shadowRoot.activeElement?.className"
    assert visitor.driver.execute_script(script) == "more", "the Tab key must skip the options"
    press(visitor, Keys.SHIFT, Keys.TAB)
    assert focused(visitor) == "input"
    press(visitor, Keys.SHIFT, Keys.TAB)
    assert focused(visitor) == "before"
    assert visitor.driver.execute_script(STATE)["open"] is False


class TestDialog:
    @pytest.fixture
    def opened(self, stub: Stub, visitor: Visitor) -> Visitor:
        open_page(stub, visitor, 'data-mode="modal"', body='<a id="before" href="#x">x</a>')
        visitor.driver.execute_script("document.querySelector('#before').focus()")
        press(visitor, Keys.TAB)
        press(visitor, Keys.ENTER)
        return visitor

    def test_dialog_is_named_modal_and_focuses_its_field(self, opened: Visitor) -> None:
        (dialog,) = opened.inside("dialog[open]")
        assert (dialog.aria_role, dialog.accessible_name) == ("dialog", "Search")
        assert opened.driver.execute_script("return arguments[0].matches(':modal')", dialog)
        assert focused(opened) == "input"

    @pytest.mark.parametrize("keys", [(Keys.TAB,), (Keys.SHIFT, Keys.TAB)], ids=["Tab", "Shift+Tab"])
    def test_tab_does_not_leave_the_open_dialog(self, opened: Visitor, keys: tuple[str, ...]) -> None:
        finds(opened)
        seen = set()
        for _ in range(6):
            press(opened, *keys)
            seen.add(focused(opened))
        assert "before" not in seen
        assert {"input", "button"} <= seen

    def test_escape_closes_the_dialog_and_returns_the_focus_to_its_button(self, opened: Visitor) -> None:
        finds(opened)
        press(opened, Keys.ESCAPE)
        assert not opened.inside("dialog[open]")
        script = "return document.querySelector('#site-search').shadowRoot.activeElement?.className"
        assert opened.driver.execute_script(script) == "open"
