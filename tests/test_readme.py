"""The README tells all there is: settings, commands, routes, error codes, plans; its examples run."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import click
import pytest
from flask import Flask

from app.config import SERVER_SETTINGS, SETTINGS
from app.errors import STATUS, ErrorCode
from app.openapi import document
from app.plans import SHIPPED_PLANS, PlanTable
from backends.embedded.ranking import RANKING
from backends.embedded.typos import errors_allowed
from backends.registry import create_backend
from tests.backends.contract import Case, page
from tests.callers import Tenant

README = (Path(__file__).parent.parent / "README.md").read_text()


@pytest.mark.parametrize("name", [*SETTINGS, *SERVER_SETTINGS])
def test_every_setting_is_told(name: str) -> None:
    assert f"| `{name}` |" in README


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_is_told_as_the_table_says(name: str) -> None:
    assert SETTINGS[name].metadata["help"] in README


@pytest.mark.parametrize("code", ErrorCode)
def test_every_error_code_is_told_beside_its_status(code: ErrorCode) -> None:
    lines = [line for line in README.splitlines() if f"`{code.value}`" in line and line.startswith("|")]
    assert any(str(STATUS[code]) in line.split("|")[1] for line in lines)


def test_every_operation_is_told(app: Flask) -> None:
    with app.test_request_context():
        paths = document()["paths"]
    table = README[README.index("### Endpoints") : README.index("### Errors")]
    missing = [
        f"{method.upper()} {path}"
        for path, operations in paths.items()
        for method in operations
        if method != "parameters"
        if not any(f"{path}`" in line and re.search(rf"\b{method.upper()}\b", line) for line in table.splitlines())
    ]
    assert missing == []


def test_every_command_is_told(app: Flask) -> None:
    table = README[README.index("## Operator commands") : README.index("## Search engines")]
    ours = {"account", "documents", "search", "database", "demo", "openapi"}
    names = []
    for name in sorted(ours):
        command = app.cli.commands[name]
        if isinstance(command, click.Group):
            names += [f"{name} {sub}" for sub in command.commands]
        else:
            names.append(name)
    assert [name for name in names if f"| `{name}" not in table] == []


def test_the_plans_are_the_ones_shipped() -> None:
    for name, limits in PlanTable(SHIPPED_PLANS).items():
        values = [
            limits.requests_per_minute, limits.requests_per_day, limits.searches_per_day, limits.documents, limits.keys,
            limits.sites,
        ]  # fmt: skip
        cells = " | ".join("unlimited" if value is None else f"{value:,}" for value in values)
        assert f"| {name} | {cells} |" in README


QUERIES: list[tuple[str, str, set[str]]] = [
    ("harbor cruise", "both", {"both", "one"}), ("harbor cru", "both", {"both", "one"}),
    ("habror", "both", {"both", "one"}), ("musem", "museum", {"museum", "shop"}), ("crise", "both", {"both"}),
    ("crus", "", set()),
    ('"opening hours"', "hours", {"hours"}), ('"hours opening"', "", set()),
    ('"opening hours" cathedral', "hours", {"hours"}), ('"hours opening" museum', "", set()),
    ('when does "museum opening" begin today', "museum", {"museum", "shop", "hours"}),
    ("museum -shop", "museum", {"museum"}), ('museum -"gift shop"', "museum", {"museum"}),
    ("node.js", "node", {"node", "parts"}), ("file_name", "name", {"name"}), ("3.11.7", "", set()),
    ("ann@example.com", "mail", {"mail"}), ("https://example.com/start", "link", {"link"}),
    ('-"gift shop"', "", {"both", "one", "hours", "museum", "node", "parts", "version", "mail", "name", "link"}),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "first", "all_found"), QUERIES)
def test_queries_mean_what_the_table_says(typed: str, first: str, all_found: set[str]) -> None:
    table = README[README.index("| typed | found |") : README.index("`filters` are in the engine")]
    assert f"fewer than {RANKING.enough} have both" in table
    assert f"in up to {('no', 'one', 'two', 'three')[RANKING.most_guessed]} words" in table
    assert f"first {('no', 'one', 'two')[RANKING.most_loose]} such words" in table
    assert errors_allowed("x" * 4) == 0
    assert [errors_allowed("x" * length) for length in (5, 8, 9)] == [1, 1, 2]
    assert "from 5 letters on, two from 9" in table
    case = Case(create_backend("memory://"), "readme")
    case.backend.create_index("readme")
    case.add(
        page("both", "Harbor", "A cruise of the harbor"), page("one", "Harbor", "Ships"),
        page("hours", "Opening hours", "Nine to five"), page("museum", "Museum", "Old things"),
        page("shop", "Museum", "The gift shop"), page("node", "Guide", "Install node.js"),
        page("parts", "Guide", "A node has js"), page("version", "Python 3.11", "7"),
        page("mail", "Contact", "Write to ann@example.com"), page("name", "Ann", "An example of a file_name"),
        page("link", "Address", "See https://example.com/start"),
    )  # fmt: skip
    found = case.ids(typed)
    assert set(found) == all_found
    if first or not all_found:
        assert found[:1] == ([first] if first else [])


def test_every_query_of_the_table_is_run() -> None:
    table = README[README.index("| typed | found |") : README.index("`filters` are in the engine")]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    shown = [typed for row in rows for typed in re.findall("`([^`]+)`", row)]
    assert len(shown) > 8
    assert set(shown) <= {typed for typed, _, _ in QUERIES}


def test_the_first_commands_are_the_makefiles() -> None:
    makefile = (Path(__file__).parent.parent / "Makefile").read_text()
    for target in re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def curl_examples() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    return [
        match for block in blocks for match in re.findall(r"^curl .*?(?=^curl |\Z)", block, re.DOTALL | re.MULTILINE)
    ]


def test_the_examples_run_in_their_order(tenant: Tenant) -> None:
    examples = curl_examples()
    assert len(examples) >= 4
    for example in examples:
        words = shlex.split(example.replace("$BASE", "").replace("$KEY", tenant.tokens["private"]))
        method, path, headers, body = "GET", words[1], {}, None
        options = iter(words[1:])
        for word in options:
            if word == "-X":
                method = next(options)
            elif word == "-H":
                name, _, value = next(options).partition(": ")
                headers[name] = value
            elif word == "-d":
                body = next(options)
                method = "POST" if method == "GET" else method
            else:
                path = word
        response = tenant.app.test_client(use_cookies=False).open(path, method=method, headers=headers, data=body)
        assert response.status_code == 200, (example, response.get_data(as_text=True))
        if "q=harbor" in path:
            assert [hit["id"] for hit in response.get_json()["results"]["hits"]] == ["2"]
        if body and '"facets"' in body:
            assert [hit["id"] for hit in response.get_json()["results"]["hits"]] == ["1"]


def test_the_error_example_is_what_the_service_answers(tenant: Tenant) -> None:
    shown = json.loads(re.search(r"```json\n(\{\"error\".*?)```", README, re.DOTALL)[1])  # type: ignore[index]
    good = {"id": "x", "title": "", "content": "", "url": "/"}
    bad = {name: value for name, value in good.items() if name != "id"}

    response = tenant.private.post("/api/v1/index/bulk", json={"documents": [good, good, good, bad]})

    assert response.get_json() == shown
