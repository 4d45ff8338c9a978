"""Dependencies are bounded in pyproject.toml and pinned completely in requirements.lock."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LINES = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.startswith("#")]
LOCKED = [Requirement(line) for line in LINES]

ASKED_FOR = [
    *PROJECT["build-system"]["requires"],
    *PROJECT["project"]["dependencies"],
    *(text for extra in PROJECT["project"]["optional-dependencies"].values() for text in extra),
    *(ROOT / ".ci" / "requirements.txt").read_text().splitlines(),
]


def locked_version(name: str, python: str) -> Version:
    """Return the only version of a package for a Python version."""
    environment = {**default_environment(), "python_version": python, "python_full_version": f"{python}.9"}
    (version,) = {
        next(iter(each.specifier)).version
        for each in LOCKED
        if canonicalize_name(each.name) == canonicalize_name(name)
        if each.marker is None or each.marker.evaluate(environment)
    }
    return Version(version)


@pytest.mark.parametrize("text", sorted(set(ASKED_FOR)))
def test_dependency_excludes_the_next_breaking_version(text: str) -> None:
    asked = Requirement(text)
    (bound,) = [Version(each.version) for each in asked.specifier if each.operator == "<"]
    for python in ("3.11", "3.12", "3.13", "3.14"):
        locked = locked_version(asked.name, python)
        assert locked in asked.specifier, "requirements.lock is out of date: run `make lock`"
        following = f"{locked.major + 1}" if locked.major else f"0.{locked.minor + 1}"
        assert bound == Version(following)


def test_locked_packages_are_pinned_by_version_without_urls() -> None:
    assert len(LINES) > len(ASKED_FOR)
    for line in LINES:
        assert re.fullmatch(r"[a-z0-9-]+==[A-Za-z0-9.]+( (;|and|or) [a-z_]+ [<>=!]+ '[A-Za-z0-9._]+')*", line), line


@pytest.mark.slow
def test_every_imported_package_is_a_declared_dependency() -> None:
    asked = {canonicalize_name(Requirement(text).name) for text in ASKED_FOR}
    known = {"app", "backends", "schemas", "validation", "_typeshed", *sys.stdlib_module_names}
    distributions = packages_distributions()
    imported = {
        module.partition(".")[0]
        for folder in ("app", "backends", "schemas", "validation")
        for path in (ROOT / folder).rglob("*.py")
        for module in imports_of(ast.parse(path.read_text()))
    }
    assert {"flask", "werkzeug"} < imported
    assert [
        module
        for module in sorted(imported - known)
        # A module of an uninstalled extra counts as a package of the same name.
        if asked.isdisjoint(canonicalize_name(name) for name in distributions.get(module, [module]))
    ] == []


def imports_of(tree: ast.AST) -> Iterator[str]:
    """Yield the names of all modules that a module imports, at any nesting level."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield str(node.module)
