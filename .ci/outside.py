"""What is expected of tests that others wrote: all pass, but those that outside.toml names with a reason."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

EXPECTATIONS = Path(__file__).with_suffix(".toml")


def not_run(folder: Path, pattern: str, run: Collection[str]) -> dict[str, str | None]:
    """The files or folders of a suite that are not run, as outcomes: they need a reason, too."""
    names = (path.relative_to(folder).as_posix() for path in sorted(folder.glob(pattern)))
    return {name: "is not run" for name in names if name not in run}


def judge(suite: str, outcomes: Mapping[str, str | None]) -> int:
    """Print what came out otherwise than expected; gives how many tests and lines of the list that are.

    Args:
        suite: The table of outside.toml.
        outcomes: Of each test by its name: ``None`` if it passed, else what went wrong.
    """
    reasons: dict[str, str] = tomllib.loads(EXPECTATIONS.read_text())[suite]
    unused, left_out, wrong = set(reasons), 0, 0
    for name, failure in outcomes.items():
        matching = [pattern for pattern in reasons if fnmatchcase(name, pattern)]
        unused.difference_update(matching)
        if failure is not None and matching:
            left_out += 1
        elif failure is not None:
            wrong += 1
            print(f"FAILED: {name}: {failure}")
        elif matching:
            wrong += 1
            print(f"PASSED, although outside.toml names it ({reasons[matching[0]]}): {name}")
    for pattern in unused:
        print(f"outside.toml names a test of {suite} that there is not: {pattern}")
    right = len(outcomes) - left_out - wrong
    print(f"{suite}: {right} as its authors expect, {left_out} otherwise for reasons, {wrong} without.")
    return wrong + len(unused) + (not outcomes)
