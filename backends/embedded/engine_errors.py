"""Translating the exceptions of tantivy into this service's errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from backends.errors import BackendError, BackendUnavailable

_PASSING = re.compile(r"os error (?:4|5|11|12|13|23|24|28|30|122)\b|LockBusy|Cannot allocate|No space left")


def is_engine_error(error: BaseException) -> bool:
    """Whether the engine or a file operation raised it. A panic of the engine has its own ``BaseException`` class."""
    return isinstance(error, ValueError | OSError | MemoryError | UnicodeError) or (
        type(error).__name__ == "PanicException"
    )


def is_passing(error: BaseException) -> bool:
    """Whether an error is due to the machine (memory, disk, open files, permissions) rather than the index."""
    return isinstance(error, MemoryError | PermissionError) or _PASSING.search(str(error)) is not None


@contextmanager
def engine_errors(doing: str) -> Iterator[None]:
    """Raise :class:`BackendUnavailable` from any engine error in the block; ``doing`` describes the operation."""
    try:
        yield
    except BackendError:
        raise
    except BaseException as error:
        if not is_engine_error(error):
            raise
        raise BackendUnavailable(f"The search engine failed while {doing}.") from error
