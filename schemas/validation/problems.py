"""Error messages that carry a stable code through marshmallow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

MAX_PROBLEMS = 100
"""Maximum number of problems in a response. Validation finds one more, to know whether there are more."""

_LONGEST_NAME = 80


class Problem(str):
    """A problem with a field, as a predicate that follows the field's name: ``is required``.

    Attributes:
        code: Stable code, such as ``required``.
        extra: Additional members of the problem in an error response.
    """

    code: str
    extra: Mapping[str, Any]

    __slots__ = ("code", "extra")

    def __new__(cls, predicate: str, code: str, **extra: Any) -> Problem:
        problem = super().__new__(cls, predicate)
        problem.code = code
        problem.extra = extra
        return problem

    def __getnewargs_ex__(self) -> tuple[tuple[str, str], dict[str, Any]]:
        """Return arguments for unpickling."""
        return (str(self), self.code), dict(self.extra)

    def __deepcopy__(self, memo: object) -> Problem:
        """Return this object, which is immutable, so that copies of a schema share it."""
        return self

    def format(self, *args: object, **kwargs: object) -> Problem:
        """Keep the code when marshmallow formats the message."""
        return Problem(super().format(*args, **kwargs), self.code, **self.extra)


REQUIRED = Problem("is required", "required")
NULL = Problem("must not be null", "null")
UNKNOWN = Problem("is not a known field", "unknown")

_OTHER_SERVICES = {"query": "q", "hitsperpage": "limit", "perpage": "limit", "size": "limit", "from": "offset"}
"""Names of parameters in other search services' APIs, which resemble none of ours."""


def closest_name(name: str, names: Iterable[str], cutoff: float = 0.7) -> str | None:
    """Return the most similar of ``names`` to a mistyped ``name``; ``None`` if none is similar enough.

    Args:
        cutoff: Minimum similarity, from 0 to 1.
    """
    from difflib import get_close_matches  # Loaded on use: few requests have mistakes, and commands load this module.

    by_spelling = {_spelling(known_name): known_name for known_name in names}
    spelling = _spelling(name[:_LONGEST_NAME])
    close = get_close_matches(spelling, by_spelling, n=1, cutoff=cutoff)
    return by_spelling.get(close[0] if close else _OTHER_SERVICES.get(spelling, ""))


def _spelling(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def unknown_field(name: str, names: Iterable[str]) -> Problem:
    """Return the problem with an unknown field, which suggests the field that was probably meant."""
    probable_name = closest_name(name, names)
    return UNKNOWN if probable_name is None else Problem(f"{UNKNOWN}; did you mean {probable_name}?", UNKNOWN.code)


def printable_name(name: str) -> str:
    """Make a name from a caller safe for an error message: short, without NUL or lone surrogates."""
    return name[:_LONGEST_NAME].encode("utf-8", "replace").decode().replace("\x00", "\ufffd")


class ProblemCount:
    """Counts problems, so that validation stops once it has found more than a response lists."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, messages: Any) -> None:
        """Count the problems in marshmallow's nested messages."""
        self.count += sum(1 for _ in walk(messages))

    @property
    def is_full(self) -> bool:
        """Whether there are enough problems to stop validation."""
        return self.count > MAX_PROBLEMS


def walk(messages: Any, path: str = "") -> Iterator[tuple[str, Problem]]:
    """Yield every problem in marshmallow's nested messages, with its path: ``documents[3].id``."""
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
