"""Docstrings say what a thing is or does: they begin with a noun or a verb, or with the *Whether* of a boolean."""

from __future__ import annotations

import ast
import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
QUESTION = re.compile(r"(What|Where|When|Who|Whom|Whose|Why|How|Which)\b")


def test_no_docstring_begins_with_a_question() -> None:
    begins = []
    for file in sorted(file for top in ("app", "backends", "schemas") for file in (PROJECT / top).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                docstring = ast.get_docstring(node) or ""
                if QUESTION.match(docstring):
                    begins.append(f"{file.relative_to(PROJECT)}: {docstring.splitlines()[0]}")
    assert begins == []
