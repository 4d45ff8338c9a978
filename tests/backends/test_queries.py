"""What a person typed is taken apart; what is beyond the bound is passed over."""

from __future__ import annotations

import pytest

from backends.embedded.queries import MAX_UNITS, parse_query


@pytest.mark.parametrize(("text", "open_end"), [
    ("a " * 200, True), ("a " * 200 + '"b c"', False), ("a " * 200 + '"b c" d', True), ("a " * 200 + '"b c" -d', False),
    ("a " * 200 + '"b c" ...', False), ('"b c" ' + "a " * 200, True),
])  # fmt: skip
def test_words_beyond_the_bound_only_tell_whether_the_last_is_finished(text: str, open_end: bool) -> None:
    parsed = parse_query(text)

    assert [unit.term for unit in parsed.units] == ["a"] * MAX_UNITS
    assert parsed.open_end is open_end
    assert parsed.phrases == ([("b", "c")] if '"' in text else [])
    assert parsed.excluded == ([("d",)] if "-d" in text else [])
