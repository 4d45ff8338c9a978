"""Memory that large requests held, and glibc's malloc would keep. Other C libraries need none of this."""

from __future__ import annotations

import ctypes

_M_ARENA_MAX = -8
ARENAS = 2
"""Heaps that the threads of a process share; glibc makes eight a core, and each keeps its own free pages."""

_library = ctypes.CDLL(None)


def bound_arenas() -> None:
    """Let the threads that are started from now on share :data:`ARENAS` heaps."""
    if hasattr(_library, "mallopt") and hasattr(_library, "malloc_trim"):
        _library.mallopt(_M_ARENA_MAX, ARENAS)


def refund() -> None:
    """Return the free pages within the heaps to the system; glibc itself returns only those at their ends."""
    if hasattr(_library, "malloc_trim"):
        _library.malloc_trim(ctypes.c_size_t(0))
