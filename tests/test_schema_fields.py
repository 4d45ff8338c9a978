"""Fields of request schemas."""

from __future__ import annotations

import pytest
from marshmallow import ValidationError

from schemas.fields import Number


class TextNumber(Number):
    """A number as schemas of query strings bind it."""

    reads_text = True


@pytest.mark.parametrize(("field", "value", "number"), [
    (Number, 0, 0), (Number, 2.5, 2.5), (Number, 10, 10), (TextNumber, "0", 0), (TextNumber, "2.5", 2.5),
    (TextNumber, "-0", 0), (TextNumber, "010.00", 10),
])  # fmt: skip
def test_numbers_within_the_limits_are_accepted(field: type[Number], value: object, number: float) -> None:
    assert field(low=0, high=10).deserialize(value) == number


@pytest.mark.parametrize(("field", "value", "code"), [
    (Number, "1", "type"), (Number, True, "type"), (Number, None, "null"), (Number, float("nan"), "out_of_range"),
    (Number, -0.1, "out_of_range"), (Number, 10.1, "out_of_range"), (Number, 10**400, "out_of_range"),
    (TextNumber, 1, "type"), (TextNumber, "", "type"), (TextNumber, "1e1", "type"), (TextNumber, "nan", "type"),
    (TextNumber, " 1", "type"), (TextNumber, "1.", "type"), (TextNumber, "\u0661", "type"),
    (TextNumber, "1" * 31, "type"), (TextNumber, "10.1", "out_of_range"), (TextNumber, "-1", "out_of_range"),
])  # fmt: skip
def test_other_numbers_are_rejected(field: type[Number], value: object, code: str) -> None:
    with pytest.raises(ValidationError) as caught:
        field(low=0, high=10).deserialize(value)
    (problem,) = caught.value.messages
    assert problem.code == code
