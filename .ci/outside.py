"""Judges test suites of other projects: all tests must pass, except those that outside.toml lists with a reason."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

EXPECTATIONS = Path(__file__).with_suffix(".toml")


def not_run(folder: Path, pattern: str, run: Collection[str]) -> dict[str, str | None]:
    """Return the files or folders of a suite that are not run, as outcomes, since they need a reason, too."""
    names = (path.relative_to(folder).as_posix() for path in sorted(folder.glob(pattern)))
    return {name: "is not run" for name in names if name not in run}


def judge(suite: str, outcomes: Mapping[str, str | None]) -> int:
    """Print the unexpected outcomes, and return their number, including unused lines of the list.

    Args:
        suite: The table of outside.toml.
        outcomes: Failures by the test's name; ``None`` if it passed.
    """
    reasons: dict[str, str] = tomllib.loads(EXPECTATIONS.read_text())[suite]
    unused, explained, wrong = set(reasons), 0, 0
    for name, failure in outcomes.items():
        matching = [pattern for pattern in reasons if fnmatchcase(name, pattern)]
        unused.difference_update(matching)
        if failure is not None and matching:
            explained += 1
        elif failure is not None:
            wrong += 1
            print(f"FAILED: {name}: {failure}")
        elif matching:
            wrong += 1
            print(f"PASSED, although outside.toml lists it ({reasons[matching[0]]}): {name}")
    for pattern in unused:
        print(f"outside.toml lists a test that {suite} does not have: {pattern}")
    right = len(outcomes) - explained - wrong
    print(f"{suite}: {right} as expected, {explained} different for a listed reason, {wrong} wrong.")
    return wrong + len(unused) + (not outcomes)
