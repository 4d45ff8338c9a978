"""Fields of request schemas."""

from __future__ import annotations

import pytest
from marshmallow import ValidationError

from schemas.fields import Number, QueryNumber


@pytest.mark.parametrize(("field", "value", "number"), [
    (Number, 0, 0), (Number, 2.5, 2.5), (Number, 10, 10), (QueryNumber, "0", 0), (QueryNumber, "2.5", 2.5),
    (QueryNumber, "-0", 0), (QueryNumber, "010.00", 10),
])  # fmt: skip
def test_numbers_within_the_limits_are_accepted(field: type[Number], value: object, number: float) -> None:
    assert field(low=0, high=10).deserialize(value) == number


@pytest.mark.parametrize(("field", "value", "code"), [
    (Number, "1", "type"), (Number, True, "type"), (Number, None, "null"), (Number, float("nan"), "out_of_range"),
    (Number, -0.1, "out_of_range"), (Number, 10.1, "out_of_range"), (Number, 10**400, "out_of_range"),
    (QueryNumber, 1, "type"), (QueryNumber, "", "type"), (QueryNumber, "1e1", "type"), (QueryNumber, "nan", "type"),
    (QueryNumber, " 1", "type"), (QueryNumber, "1.", "type"), (QueryNumber, "\u0661", "type"),
    (QueryNumber, "1" * 31, "type"), (QueryNumber, "10.1", "out_of_range"), (QueryNumber, "-1", "out_of_range"),
])  # fmt: skip
def test_other_numbers_are_rejected(field: type[Number], value: object, code: str) -> None:
    with pytest.raises(ValidationError) as caught:
        field(low=0, high=10).deserialize(value)
    (problem,) = caught.value.messages
    assert problem.code == code
