"""The threat model cannot drift: every line names tests, and those tests exist."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.test_docs import PAGES, PROJECT, headings

THREATS = PAGES["docs/threats.md"]
LINES = re.findall(r"^- .+?(?=^- |^#|\Z)", THREATS, re.MULTILINE | re.DOTALL)
TEST = re.compile(r"`(tests/[\w/]+\.py)::([\w:]+)`")
POLICY = (PROJECT / "SECURITY.md").read_text()


@cache
def names_in(path: str) -> set[str]:
    """Return the names of a module's tests as in pytest, with their classes."""
    file = PROJECT / path
    return set(_named(ast.parse(file.read_text()).body)) if file.exists() else set()


def _named(body: list[ast.stmt], prefix: str = "") -> list[str]:
    names = []
    for node in body:
        if isinstance(node, ast.ClassDef):
            names += _named(node.body, f"{prefix}{node.name}::")
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            names.append(prefix + node.name)
    return names


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[:60])
def test_every_threat_names_a_test(line: str) -> None:
    assert line.startswith("- **")
    assert TEST.search(line)


def test_tests_named_in_the_threat_model_exist() -> None:
    named = TEST.findall(THREATS)
    assert [f"{path}::{name}" for path, name in named if name not in names_in(path)] == []
    assert len(named) == THREATS.count("`tests/")


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)\s]+)\)", POLICY))
def test_security_policy_links_point_to_existing_files(target: str) -> None:
    assert (PROJECT / target).is_file()


@pytest.mark.parametrize("title", re.findall(r"under\s+\*([^*]+)\*", POLICY))
def test_sections_named_in_the_security_policy_exist(title: str) -> None:
    assert title.lower().replace(" ", "-") in headings(PAGES["docs/security.md"])
