"""Error messages that carry a stable code through marshmallow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


class Problem(str):
    """What is wrong with a field, as a predicate that follows its name: ``is required``.

    Attributes:
        code: Stable code, such as ``required``.
        extra: Further members of the problem in an error answer.
    """

    code: str
    extra: Mapping[str, Any]

    __slots__ = ("code", "extra")

    def __new__(cls, predicate: str, code: str, **extra: Any) -> Problem:
        problem = super().__new__(cls, predicate)
        problem.code = code
        problem.extra = extra
        return problem

    def __deepcopy__(self, memo: object) -> Problem:
        """It cannot change, so a copy of a schema may share it."""
        return self

    def format(self, *args: object, **kwargs: object) -> Problem:
        """marshmallow formats every message; the code must survive it."""
        return Problem(super().format(*args, **kwargs), self.code, **self.extra)


REQUIRED = Problem("is required", "required")
NULL = Problem("must not be null", "null")
UNKNOWN = Problem("is not a known field", "unknown")


def walk(messages: Any, path: str = "") -> Iterator[tuple[str, Problem]]:
    """Every problem in marshmallow's nested messages, with its path: ``documents[3].id``."""
    if isinstance(messages, Mapping):
        for key, nested in messages.items():
            if key == "_schema":
                yield from walk(nested, path)
            elif isinstance(key, int):
                yield from walk(nested, f"{path}[{key}]")
            else:
                yield from walk(nested, f"{path}.{key}" if path else str(key))
    elif isinstance(messages, Problem):
        yield path, messages
    elif isinstance(messages, str):
        yield path, Problem(messages, "invalid")
    elif isinstance(messages, Sequence):
        for nested in messages:
            yield from walk(nested, path)
