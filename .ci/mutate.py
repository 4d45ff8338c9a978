"""Break the code at random places, one at a time, and run the tests of the module: SEED COUNT [all] [FOLDER...].

"all" also runs all fast tests; FOLDER limits the places to these folders.
"""

import ast
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PAIRS = ((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.And, ast.Or))
OTHER = dict(PAIRS) | {two: one for one, two in PAIRS} | {ast.In: ast.NotIn, ast.NotIn: ast.In}
PYTEST = [sys.executable, "-m", "pytest", "-qx", "--timeout", "100", "-m"]
PYTEST += ["not (slow or live or browser or clients or npm or service or deploy)"]


def changes(source):
    tree = ast.parse(source)
    unplaced = {node for text in ast.walk(tree) if isinstance(text, ast.JoinedStr) for node in ast.walk(text)}
    for node in (node for node in ast.walk(tree) if node not in unplaced):
        match node:
            case ast.Compare(left, [operator, *more], right) if type(operator) in OTHER:
                yield node, ast.unparse(ast.Compare(left, [OTHER[type(operator)](), *more], right))
            case ast.BoolOp(operator, values):
                yield node, ast.unparse(ast.BoolOp(OTHER[type(operator)](), values))
            case ast.UnaryOp(ast.Not(), operand) | ast.Expr(ast.Call() as operand):
                yield node, "None" if isinstance(node, ast.Expr) else ast.unparse(operand)
            case ast.Constant(value) if type(value) is int:
                yield from ((node, str(value + step)) for step in (1, -1))


def is_killed(copy, file):
    place = file.with_suffix("").parts
    words = f"test_{file.name}", ".".join(place), f"{'.'.join(place[:-1])} import {file.stem}"
    tests = [str(p) for p in Path("tests").rglob("test_*.py") if any(word in p.name + p.read_text() for word in words)]
    runs = [tests or ["/".join(("tests", *place[place[0] == "app" : -1]))]] + [["tests"]] * ("all" in options)
    return any(subprocess.run([*PYTEST, *run], cwd=copy, capture_output=True).returncode not in (0, 5) for run in runs)


options = sys.argv[3:]
folders = [option for option in options if option != "all"] or ["app", "backends", "schemas"]
code = sorted(p for top in folders for p in Path(top).rglob("*.py") if "versions" not in p.parts)
places = [(file, *change) for file in code for change in changes(file.read_text())]
with tempfile.TemporaryDirectory() as copy:
    shutil.copytree(".", copy, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__"))
    for file, old, new in random.Random(sys.argv[1]).sample(places, int(sys.argv[2])):
        lines = [b"", *file.read_bytes().splitlines(keepends=True)]
        start = b"".join(lines[: old.lineno]) + lines[old.lineno][: old.col_offset]
        rest = lines[old.end_lineno][old.end_col_offset :] + b"".join(lines[old.end_lineno + 1 :])
        Path(copy, file).write_bytes(start + f"({new})".encode() + rest)
        print("killed" if is_killed(copy, file) else "LIVED ", f"{file}:{old.lineno}: {ast.unparse(old)} -> {new}")
        shutil.copy(file, Path(copy, file))
