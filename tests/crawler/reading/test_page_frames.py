"""Names of classes and ids tell what is around a text, however they are written."""

from __future__ import annotations

import pytest

from app.crawler.reading.page_frames import roles_of_names


@pytest.mark.parametrize("names", ["navbar", "subNav", "spirit-nav", "cookie_banner", "site-comments", "Share-Buttons"])
def test_noise(names: str) -> None:
    assert roles_of_names(f"col-3 {names}")[0]


@pytest.mark.parametrize("names", ["toc", "sphinxsidebar", "page-header", "bottomlang", "footer-links", "tags"])
def test_lists_of_links(names: str) -> None:
    assert roles_of_names(names) == (False, True)


@pytest.mark.parametrize(
    "names", ["", "deprecation-comment", "table-contents", "content", "note", "method-summary-table", "shared-memory"]
)
def test_names_of_texts(names: str) -> None:
    assert roles_of_names(names) == (False, False)


def test_endless_names_are_bounded() -> None:
    assert roles_of_names("nav-" * 100_000 + " " + "x " * 100_000) == (False, False)
