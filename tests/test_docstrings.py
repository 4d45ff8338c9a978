"""Docstrings name exceptions that exist."""

from __future__ import annotations

import ast
import builtins
import pkgutil
import re
from pathlib import Path

PROJECT = Path(__file__).parents[1]


def test_exceptions_in_raises_sections_exist() -> None:
    known, named = set(dir(builtins)), set()
    for path in (path for folder in ("app", "backends", "schemas") for path in (PROJECT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import | ast.ImportFrom):
                known |= {name.asname or name.name for name in node.names}
            elif isinstance(node, ast.ClassDef):
                known.add(node.name)
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                section = (ast.get_docstring(node) or "").partition("Raises:\n")[2].partition("\n\n")[0]
                for names in re.findall(r"^    (\w[\w., ]*):", section, re.MULTILINE):
                    named |= {(name.strip(), path.name) for name in names.split(",")}

    missing = {(name, file) for name, file in named if "." not in name and name not in known}
    assert all(pkgutil.resolve_name(name) for name, _ in named if "." in name)
    assert len(named) > 300
    assert sorted(missing) == []
