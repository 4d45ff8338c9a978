"""Filters are parsed as in Meilisearch, and no input crashes the parser."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.errors import BackendRejected
from backends.filters import (
    MAX_FILTER_DEPTH,
    MAX_FILTER_LENGTH,
    And,
    Between,
    Comparison,
    Filter,
    Not,
    OneOf,
    Or,
    Presence,
    fields_of,
    parse_filter,
)


@pytest.mark.parametrize(("text", "tree"), [
    ("a = 1", Comparison("a", "=", "1", 0)),
    ("a=1", Comparison("a", "=", "1", 0)),
    (" a  !=\n'x y' ", Comparison("a", "!=", "x y", 1)),
    ('"my field" >= "1 2"', Comparison("my field", ">=", "1 2", 0)),
    ("a = 'it\\'s'", Comparison("a", "=", "it's", 0)),
    ('a = "\\"x\\" \\\\ \\n"', Comparison("a", "=", '"x" \\ \\n', 0)),
    ("a = ''", Comparison("a", "=", "", 0)),
    ("a 1 TO 2", Between("a", "1", "2", 0)),
    ("a IN [1, 'b c',d,]", OneOf("a", ("1", "b c", "d"), 0)),
    ("a IN[]", OneOf("a", (), 0)),
    ("a NOT IN [1]", Not(OneOf("a", ("1",), 0))),
    ("a EXISTS", Presence("a", "exists", 0)),
    ("a NOT EXISTS", Not(Presence("a", "exists", 0))),
    ("a IS NULL", Presence("a", "null", 0)),
    ("a IS NOT NULL", Not(Presence("a", "null", 0))),
    ("a IS EMPTY", Presence("a", "empty", 0)),
    ("a IS NOT EMPTY", Not(Presence("a", "empty", 0))),
    ("a = 1 OR b = 2 AND c = 3", Or((Comparison("a", "=", "1", 0), And((Comparison("b", "=", "2", 9),
                                                                       Comparison("c", "=", "3", 19)))))),
    ("(a = 1 OR b = 2) AND c = 3", And((Or((Comparison("a", "=", "1", 1), Comparison("b", "=", "2", 10))),
                                        Comparison("c", "=", "3", 21)))),
    ("NOT a = 1 AND b = 2", And((Not(Comparison("a", "=", "1", 4)), Comparison("b", "=", "2", 14)))),
    ("NOT (a = 1)", Not(Comparison("a", "=", "1", 5))),
    ("date > 2024-05-01T10:00:00+02:00", Comparison("date", ">", "2024-05-01T10:00:00+02:00", 0)),
    ("naïve = 日本", Comparison("naïve", "=", "日本", 0)),
    ("a = 'AND'", Comparison("a", "=", "AND", 0)),
    ("url = /docs/a.html", Comparison("url", "=", "/docs/a.html", 0)),
])  # fmt: skip
def test_expression_is_parsed_into_its_tree(text: str, tree: Filter) -> None:
    assert parse_filter(text) == tree


@pytest.mark.parametrize(("text", "position"), [
    ("", 0), ("   ", 3), ("a", 1), ("a =", 3), ("= 1", 0), ("a == 1", 3), ("a = 1 b = 2", 6), ("(a = 1", 6),
    ("a = 1)", 5),     ("a IN", 4), ("a IN [", 6), ("a IN [1", 7), ("a IN [1 2]", 8), ("a IN [,]", 6), ("a 1 TO", 6),
    ("a 1 2", 2),
    ("a TO 1", 2), ("a IS", 4), ("a IS 1", 5), ("a NOT", 5), ("a NOT NULL", 6), ("a = 1 AND", 9), ("AND a = 1", 0),
    ("a = 'x", 4), ("a = \"x'", 4), ("a & b", 2), ("a = 1 and b = 2", 6), ("()", 1), ("a = IN", 4), ("NOT", 3),
    ("a = (", 4), ("a = {", 4),
])  # fmt: skip
def test_malformed_expression_is_rejected_at_the_position_of_its_error(text: str, position: int) -> None:
    with pytest.raises(BackendRejected) as caught:
        parse_filter(text)
    assert (caught.value.parameter, caught.value.position) == ("filters", position)


def test_filter_length_and_nesting_depth_are_limited() -> None:
    deep = "(" * MAX_FILTER_DEPTH + "a = 1" + ")" * MAX_FILTER_DEPTH
    assert parse_filter(deep) == Comparison("a", "=", "1", MAX_FILTER_DEPTH)
    long = "a = " + "x" * (MAX_FILTER_LENGTH - 4)
    assert isinstance(parse_filter(long), Comparison)
    for text in (f"({deep})", "NOT " * 400 + "a = 1", "(" * 1900, long + "x", "(NOT " * 300):
        with pytest.raises(BackendRejected):
            parse_filter(text)


@pytest.mark.parametrize(("text", "message"), [
    ("section == docs", "Expected a value after =, not =. Write section = docs."),
    ("a = b AND price >=> 5", "Expected a value after >=, not >. Write price >= 5."),
    ("section ==", "Expected a value after =, not =. Write section = value."),
    ("section = ", "Expected a value after =. Write section = value."),
    ("'opening hours' == 'it\\'s late'", "Expected a value after =, not =. Write 'opening hours' = 'it\\'s late'."),
    ("'IN' !=", "Expected a value after !=. Write 'IN' != value."),
])  # fmt: skip
def test_message_about_a_missing_value_gives_an_example(text: str, message: str) -> None:
    with pytest.raises(BackendRejected) as caught:
        parse_filter(text)
    assert str(caught.value) == message


@given(st.text(alphabet="ab1 =!<>()[],'\"\\ANDORTINOXS", max_size=60) | st.text(max_size=60))
def test_any_text_is_parsed_or_rejected_with_a_position_inside_it(text: str) -> None:
    try:
        tree = parse_filter(text)
    except BackendRejected as error:
        position = error.position
    else:
        position = min(fields_of(tree).values())
    assert position is not None
    assert 0 <= position <= len(text)


def test_fields_are_listed_with_their_first_position() -> None:
    tree = parse_filter("a = 1 AND NOT (b EXISTS OR a IN [2]) AND c 1 TO 2")
    assert fields_of(tree) == {"a": 0, "b": 15, "c": 41}
