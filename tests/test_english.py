"""Plain English in the source: rules that a program can check (names, negations, docstrings of booleans)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
VAGUE_NAMES = frozenset(
    (
        *("found", "known", "wanted", "shown", "sent", "kept", "told", "given", "named", "taken", "gone", "said"),
        *("seen", "held", "meant", "asked", "made", "done", "left"),
        *("who", "whom", "what", "whatever", "which", "whose", "that", "those", "such"),
    )
)
"""Participles and pronouns used in place of a noun of the domain."""
VAGUE_BEGINNINGS = ("most_", "what_", "who_", "those_", "looks_", "goes_")
FREE_RELATIVE_CLAUSE = re.compile(r"(What|Where|When|Who|Whom|Whose|Whoever|Whatever|Why|How|Which|Those|That)\b")
NEGATED_NOUN = re.compile(
    r"(?<!there )\b(is|are|was|were) (none\b|no (?!longer\b|more\b|less\b|fewer\b|later\b|earlier\b|match\b))",
    re.IGNORECASE,
)


def source_files() -> Iterator[tuple[str, ast.Module]]:
    for folder in ("app", "backends", "schemas"):
        for path in sorted((PROJECT / folder).rglob("*.py")):
            if "versions" not in path.parts:
                yield str(path.relative_to(PROJECT)), ast.parse(path.read_text())


def assigned_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield functions, classes, arguments, and variables, but not public names: table columns and API fields."""
    public = {
        id(target)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in public:
            yield node.lineno, node.id


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text


def strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def test_names_are_nouns_of_the_domain_or_verbs_with_an_object() -> None:
    vague = [
        f"{file}:{line}: {name}"
        for file, tree in source_files()
        for line, name in assigned_names(tree)
        if (plain := name.strip("_").lower()) in VAGUE_NAMES or plain.startswith(VAGUE_BEGINNINGS)
    ]

    assert vague == []


def test_negations_use_not() -> None:
    """Say "X is not a valid header name", never "X is no name of a header"."""
    negated = [
        f"{file}:{line}: {match.string[max(0, match.start() - 30) : match.end() + 30]!r}"
        for file, tree in source_files()
        for line, text in strings(tree)
        for match in NEGATED_NOUN.finditer(text)
    ]

    assert negated == []


def test_docstrings_begin_with_a_noun_or_a_verb() -> None:
    """Booleans begin with "Whether". A free relative clause makes the reader work out its meaning."""
    clauses = [
        f"{file}:{line}: {text.splitlines()[0]}"
        for file, tree in source_files()
        for line, text in docstrings(tree)
        if FREE_RELATIVE_CLAUSE.match(text) or text.startswith("Tell whether")
    ]

    assert clauses == []
