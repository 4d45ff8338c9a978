"""The README and docs/ cover every setting, command, route, error code, plan, and path, and their examples run."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import click
import pytest
from flask import Flask

from app.apidoc.openapi import document
from app.config import SERVER_SETTINGS, SETTINGS
from app.crawl.fetch.values import MAX_PAGE_BYTES, Reason
from app.crawl.sources.sources import MAX_SOURCES
from app.documentation import GROUPS, MOVED_SECTIONS, REFERENCE, anchor_of, documentation_files
from app.documentation import README as README_PAGE
from app.errors import STATUS, ErrorCode
from app.operations import attempts
from app.plans import SHIPPED_PLANS, PlanTable
from app.services.access import sessions
from app.services.search.encoding import MAX_SORT_KEYS
from app.services.usage import cpu_limits, quota
from app.web.parsing import MAX_OPEN_BODY_BYTES
from backends.embedded.query.ranking import RANKING
from backends.embedded.query.typos import errors_allowed
from backends.languages import LANGUAGES
from backends.registry import create_backend
from backends.standard_fields import (
    REQUIRED_HIT_FIELDS,
    STANDARD,
    STANDARD_FIELDS,
    TEXT_FIELDS,
    UNCOUNTED_FIELDS,
)
from schemas.related_pages import MAX_PAGES
from schemas.search import MAX_FILTER_LENGTH, MAX_QUERY_BYTES, MAX_SESSION_LENGTH
from schemas.search_rules import MAX_RULES
from schemas.search_settings import (
    MAX_FILTER_VALUES,
    MAX_HIDDEN_SUGGESTIONS,
    MAX_RULE_DOCUMENTS,
    MAX_RULE_WORDS,
    MAX_SYNONYMS,
)
from schemas.settings_previews import MAX_PREVIEWED_BYTES, MAX_PREVIEWED_QUERIES
from schemas.validation.documents import (
    MAX_BATCH,
    MAX_CUSTOM_FIELDS,
    MAX_DOCUMENT_BYTES,
    MAX_ID_LENGTH,
    MAX_URL_LENGTH,
)
from schemas.validation.problems import MAX_PROBLEMS
from tests.backends.contract import Case, page
from tests.callers import Tenant

PROJECT = Path(__file__).parent.parent
FILES = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]
PAGES = {str(file.relative_to(PROJECT)): file.read_text() for file in FILES}
IN_ORDER = [PAGES["README.md"], *(PAGES[f"docs/{name}.md"] for name in documentation_files() if name != README_PAGE)]
"""Pages in reading order; their examples may build on one another."""
README = PAGES["README.md"]
DOCS = "\n".join(PAGES.values())


def section(page: str, title: str) -> str:
    """Return the text between a heading and the next heading."""
    return re.split(r"^#+ ", re.split(rf"^#+ {title}$", PAGES[page], flags=re.MULTILINE)[1], flags=re.MULTILINE)[0]


@pytest.mark.parametrize("name", [*SETTINGS, *SERVER_SETTINGS])
def test_every_setting_is_documented_with_its_help_text_default_and_an_example(name: str) -> None:
    default, help_text = SERVER_SETTINGS.get(name) or (SETTINGS[name].default, SETTINGS[name].metadata["help"])
    value = str(default).lower() if isinstance(default, bool) else str(default)
    shown = "empty" if not value else value if " " in value else f"`{value}`"
    documented = " ".join(section("docs/settings.md", f"`{name}`").split())

    assert documented.startswith(help_text)
    assert f"Default: {shown}. Example: `{name}=" in documented


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_is_documented(reason: Reason) -> None:
    assert f"| `{reason}` |" in section("docs/sources.md", "Reasons")


@pytest.mark.parametrize("code", ErrorCode)
def test_every_error_code_is_documented_with_its_status(code: ErrorCode) -> None:
    table = [row.split("|") for row in section("docs/errors.md", "Codes").splitlines() if row.startswith("|")]
    rows = [[cell.strip() for cell in row[1:-1]] for row in table]
    ((status, _, meaning, remedy),) = (row for row in rows if row[1] == f"`{code.value}`")
    assert status == str(STATUS[code])
    assert meaning.endswith(".")
    assert remedy.endswith(".")


def test_every_api_operation_is_documented(app: Flask) -> None:
    with app.test_request_context():
        paths = document()["paths"]
    table = section("docs/api.md", "Endpoints")
    missing = [
        f"{method.upper()} {path}"
        for path, operations in paths.items()
        for method in operations
        if method != "parameters"
        if not any(f"{path}`" in line and re.search(rf"\b{method.upper()}\b", line) for line in table.splitlines())
    ]
    assert missing == []


def test_every_operator_command_is_documented(app: Flask) -> None:
    table = section("docs/operations.md", "Operator commands")
    ours = {"account", "crawl", "database", "demo", "documents", "openapi", "search", "serve", "worker"}
    context = click.Context(app.cli)
    names = []
    for name in sorted(ours):
        command = app.cli.get_command(context, name)
        if isinstance(command, click.Group):
            names += [f"{name} {sub}" for sub in command.commands]
        else:
            names.append(name)
    assert [name for name in names if f"| `{name}" not in table] == []


def test_documented_plans_match_the_shipped_plans() -> None:
    for name, limits in PlanTable(SHIPPED_PLANS).items():
        values = [
            limits.requests_per_minute, limits.requests_per_day, limits.searches_per_day, limits.documents, limits.keys,
            limits.sites, limits.asks_per_day,
        ]  # fmt: skip
        cells = " | ".join("unlimited" if value is None else f"{value:,}" for value in values)
        assert f"| {name} | {cells} |" in section("docs/limits.md", "Plans")


def told_size(count: int) -> str:
    """Format a number as in the table of sizes, without its unit."""
    return f"{count // 2**20} MiB" if count % 2**20 == 0 and count else f"{count:,}"


SETTING = {name: field.default for name, field in SETTINGS.items()}
SIZES = {
    "documents in one bulk request": MAX_BATCH,
    "body of a bulk request or a file to import": SETTING["MAX_BULK_BODY_BYTES"],
    "body of a login, a registration, and other forms for anyone": MAX_OPEN_BODY_BYTES,
    "body of any other request": SETTING["MAX_BODY_BYTES"],
    "one document": MAX_DOCUMENT_BYTES,
    "custom fields of one document": MAX_CUSTOM_FIELDS,
    "different custom fields of one site": SETTING["MAX_SITE_FIELDS"],
    "a document's `id`": MAX_ID_LENGTH,
    "a document's `url`": MAX_URL_LENGTH,
    "ids in one request to remove documents": MAX_BATCH,
    "a query": MAX_QUERY_BYTES,
    "a filter": MAX_FILTER_LENGTH,
    "fields to sort by": MAX_SORT_KEYS,
    "hits of one page": 100,
    "documents in one response": SETTING["MAX_ANSWER_BYTES"],
    "suggestions in one response": 20,
    "related or popular pages in one response": MAX_PAGES,
    "texts that a site never suggests": MAX_HIDDEN_SUGGESTIONS,
    "words and phrases in all synonyms": MAX_SYNONYMS,
    "rules of a site": MAX_RULES,
    "words that rules match with `words` in total": MAX_RULE_WORDS,
    "documents that rules pin and hide in total": MAX_RULE_DOCUMENTS,
    "values in the filters of rules and `boosts` in total": MAX_FILTER_VALUES,
    "queries of one preview": MAX_PREVIEWED_QUERIES,
    "all queries of one preview": MAX_PREVIEWED_BYTES,
    "`session_id`": MAX_SESSION_LENGTH,
    "sources of one site": MAX_SOURCES,
    "one page that a source reads": MAX_PAGE_BYTES,
    "problems that one error lists": MAX_PROBLEMS,
}


def test_documented_sizes_match_the_code(app: Flask) -> None:
    rows = [row.split("|") for row in section("docs/limits.md", "Sizes").splitlines() if row.startswith("|")][2:]
    told = {what.strip(): limit.strip() for _, what, limit, _ in rows}
    assert told.keys() == SIZES.keys()
    for what, limit in SIZES.items():
        assert re.fullmatch(rf"{told_size(limit)}( characters| bytes)?", told[what]), what
    with app.test_request_context():
        paths = document()["paths"]
    for path, limit in (
        ("/v1/search", SIZES["hits of one page"]),
        ("/v1/suggest", SIZES["suggestions in one response"]),
        ("/v1/related", SIZES["related or popular pages in one response"]),
    ):
        (parameter,) = (found for found in paths[path]["get"]["parameters"] if found["name"] == "limit")
        assert parameter["schema"]["maximum"] == limit


LIMITS = (
    f"at most {quota.NEW_SITES_LIMIT} sites per day in addition to the number that your plan allows, or "
    f"{quota.MAX_NEW_SITES:,} where the plan has no limit,",
    f"at most {quota.FILES_LIMIT} requests per minute, and {quota.VISITOR_LIMIT} requests per minute per visitor.",
    f"{attempts.PASSWORD_HASHES} per quarter of an hour for one IP address, and {attempts.PASSWORD_CHECKS} per hour",
    f"A member has at most {sessions.MAX_SESSIONS} sessions",
    f"more than {cpu_limits.FREE_SECONDS * 1000:.0f} ms of CPU time",
    f"a tenth of the plan's requests per minute, at least {cpu_limits.MIN_SECONDS}; shared",
    f"| public keys and engine keys | {cpu_limits.ADDRESS_SECONDS} for each visitor |",
    f"| sessions | {cpu_limits.MEMBER_SECONDS} for each member, and "
    f"{quota.MEMBERS_FACTOR * cpu_limits.MEMBER_SECONDS} for all members of the account |",
    f"| sessions | {quota.SESSION_LIMIT} requests per minute per member, and "
    f"{quota.MEMBERS_FACTOR * quota.SESSION_LIMIT:,} for all members of the account, whatever the plan",
    f"| no valid key or session | {cpu_limits.ADDRESS_SECONDS} for each IP address |",
    f"have a limit of {quota.READ_PAGES_LIMIT} per minute for an account.",
)


@pytest.mark.parametrize("limit", LIMITS)
def test_documented_limits_match_the_code(limit: str) -> None:
    assert limit in " ".join(PAGES["docs/limits.md"].split())


QUERIES: list[tuple[str, str, set[str]]] = [
    ("harbor cruise", "both", {"both", "one"}), ("harbor cru", "both", {"both", "one"}),
    ("habror", "both", {"both", "one"}), ("musem", "museum", {"museum", "shop"}), ("crise", "both", {"both"}),
    ("crus", "", set()),
    ('"opening hours"', "hours", {"hours"}), ('"hours opening"', "", set()),
    ('"opening hours" cathedral', "hours", {"hours"}), ('"hours opening" museum', "", set()),
    ('when does "museum opening" begin today', "museum", {"museum", "shop", "hours"}),
    ("museum -shop", "museum", {"museum"}), ('museum -"gift shop"', "museum", {"museum"}),
    ("node.js", "node", {"node", "parts"}), ("nodde.js", "node", {"node"}), ("file_name", "name", {"name"}),
    ("3.11.7", "", set()),
    ("https://example.com/help/reset-2fa", "lost", {"lost"}), ("/help/reset-2fa", "lost", {"lost"}),
    ("reset-2fa", "lost", {"lost"}),
    ("ann@example.com", "mail", {"mail"}), ("https://example.com/start", "link", {"link"}),
    ('-"gift shop"', "", {"both", "one", "hours", "museum", "node", "parts", "version", "mail", "name", "link",
                          "lost"}),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "first", "all_found"), QUERIES)
def test_documented_queries_return_the_documented_pages(typed: str, first: str, all_found: set[str]) -> None:
    table = section("docs/query-language.md", "Query language")
    assert f"If fewer than {RANKING.min_hits_before_relaxing} match" in table
    assert f"in up to {('no', 'one', 'two', 'three')[RANKING.max_expensive_terms]} rare words" in table
    assert f"first {('no', 'one', 'two')[RANKING.max_split_compounds]} such words" in table
    assert errors_allowed("x" * 4) == 0
    assert [errors_allowed("x" * length) for length in (5, 8, 9)] == [1, 1, 2]
    assert "Words of 5 letters or more tolerate one typo, words of 9 or more tolerate two" in table
    assert f"In a word of {RANKING.swapped_from} letters that no page has, two neighboring letters may be" in table
    case = Case(create_backend("memory://"), "readme")
    case.backend.create_index("readme")
    case.add(
        page("both", "Harbor", "A cruise of the harbor"), page("one", "Harbor", "Ships"),
        page("hours", "Opening hours", "Nine to five"), page("museum", "Museum", "Old things"),
        page("shop", "Museum", "The gift shop"), page("node", "Guide", "Install node.js"),
        page("parts", "Guide", "A node has js"), page("version", "Python 3.11", "7"),
        page("mail", "Contact", "Write to ann@example.com"), page("name", "Ann", "An example of a file_name"),
        page("link", "Address", "See https://example.com/start"),
        {**page("lost", "Phones"), "url": "https://example.com/help/reset-2fa"},
    )  # fmt: skip
    found = case.ids(typed)
    assert set(found) == all_found
    if first or not all_found:
        assert found[:1] == ([first] if first else [])


def test_every_documented_query_is_tested() -> None:
    table = section("docs/query-language.md", "Query language")
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    shown = [typed for row in rows for typed in re.findall("`([^`]+)`", row)]
    assert len(shown) > 8
    assert set(shown) <= {typed for typed, _, _ in QUERIES}


def test_documented_standard_fields_match_the_code() -> None:
    told = re.findall(r"\| `(\w+)` \| (yes|no) \|", section("docs/documents.md", "Fields"))
    assert told == [(field.name, "yes" if field.required else "no") for field in STANDARD]
    assert f"| standard field | {', '.join(f'`{name}`' for name in STANDARD_FIELDS)}. |" in PAGES["docs/glossary.md"]
    searching = PAGES["docs/search.md"] + PAGES["docs/query-language.md"]
    for begin, end, names in (
        ("Every hit has ", r"\.", REQUIRED_HIT_FIELDS),
        ("", " cannot be facets", UNCOUNTED_FIELDS),
        ("- \\*\\*Field\\.\\*\\* A match in ", r"\.", TEXT_FIELDS),
    ):
        sentence = re.search(rf"{begin}((?:[^`.]*`\w+`)+)[^`.]*{end}", searching)
        assert sentence, end
        assert set(re.findall(r"`(\w+)`", sentence[1])) == set(names)


def test_documented_make_targets_exist() -> None:
    makefile = (PROJECT / "Makefile").read_text()
    for target in re.findall(r"(?:^|`)make ([a-z-]+)", DOCS, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("file", sorted((PROJECT / "docs" / "examples").iterdir()), ids=lambda file: file.name)
def test_documented_script_matches_the_tested_file(file: Path) -> None:
    language = {".mjs": "js", ".php": "php", ".py": "python"}[file.suffix]
    script = file.read_text()
    page, most_lines = ("docs/billing.md", 80) if file.stem == "billing" else ("docs/sync.md", 59)
    assert f"```{language}\n{script}```\n" in PAGES[page]
    assert len(script.splitlines()) <= most_lines


def curl_examples() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", "\n".join(IN_ORDER).replace("\\\n", " "), re.DOTALL)
    return [
        match for block in blocks for match in re.findall(r"^curl .*?(?=^curl |\Z)", block, re.DOTALL | re.MULTILINE)
    ]


@pytest.mark.slow
def test_curl_examples_run_in_order(tenant: Tenant) -> None:
    # No language model answers here; tests/api/test_asks.py sends such questions.
    examples = [example for example in curl_examples() if "/v1/ask" not in example]
    operator_token = "o" * 32
    part = tenant.app.extensions["runtime"]
    part.settings = replace(part.settings, operator_token=operator_token)
    assert len(examples) >= 8
    sync_id = ""
    for example in examples:
        command = example.replace("$BASE", "").replace("$KEY", tenant.tokens["private"]).replace("$SYNC", sync_id)
        command = command.replace("$OPERATOR_TOKEN", operator_token).replace("$PUBLIC_KEY", tenant.tokens["public"])
        words = shlex.split(command)
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
        begins_sync = path == "/api/v1/sync"
        creates = ("/sites", "/collections", "/sources", "/keys", "/webhooks", "/import-config", "/invitations")
        begun = method == "POST" and path.partition("?")[0].endswith(creates)
        status = 201 if begins_sync or begun else 200
        assert response.status_code == status, (example, response.get_data(as_text=True))
        if begins_sync:
            sync_id = response.get_json()["sync"]["id"]
        if "q=geting+her" in path:
            assert [hit["id"] for hit in response.get_json()["results"]["hits"]] == ["2"]
        if body and '"q": "open"' in body:
            assert [hit["id"] for hit in response.get_json()["results"]["hits"]] == ["2", "1"]
        if "q=lighthose" in path:
            shown = json.loads(re.findall(r"```json\n(.*?)```", PAGES["docs/start.md"], re.DOTALL)[1])["results"]
            results = response.get_json()["results"]
            assert {**results, "query_id": "", "processingTimeMs": 0} == {
                **shown,
                "query_id": "",
                "processingTimeMs": 0,
            }
        if body and '"enter"' in body:
            assert [hit["id"] for hit in response.get_json()["results"]["hits"]] == ["start-2"]
        if body and '"start-1"' in body and path.endswith("/bulk"):
            shown = re.search(r"```json\n(.*?)```", PAGES["docs/start.md"], re.DOTALL)
            assert shown is not None
            assert response.get_json() == json.loads(shown[1])


def test_documented_search_matches_the_response(tenant: Tenant) -> None:
    example = next(example for example in curl_examples() if "q=opning+hours" in example)
    shown = json.loads(re.search(r"```json\n(\{\"results\".*?)```", PAGES["docs/search.md"], re.DOTALL)[1])
    (hit,) = shown["results"]["hits"]
    sent = {name: value for name, value in hit.items() if name != "_formatted"}
    tenant.private.post("/api/v1/index/bulk", json={"documents": [sent]})

    response = tenant.private.get(shlex.split(example)[1].removeprefix("$BASE")).get_json()

    for body in (response, shown):
        body["results"] |= {"query_id": "", "processingTimeMs": 0}
    assert response == shown


def test_documented_error_example_matches_the_response(tenant: Tenant) -> None:
    shown = json.loads(re.search(r"```json\n(\{\"error\".*?)```", PAGES["docs/errors.md"], re.DOTALL)[1])
    good = {"id": "x", "title": "", "content": "", "url": "/"}
    bad = {name: value for name, value in good.items() if name != "id"}

    response = tenant.private.post("/api/v1/index/bulk", json={"documents": [good, good, good, bad]})

    assert response.get_json() == shown


def test_readme_has_at_most_160_lines() -> None:
    assert len(README.splitlines()) <= 160
    assert [line for line in README.splitlines() if len(line) > 120] == []


def headings(text: str) -> list[str]:
    prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return [anchor_of(title) for title in re.findall(r"^#+ +(.+?)\s*$", prose, re.MULTILINE)]


@pytest.mark.parametrize("name", PAGES)
def test_headings_are_unique_within_a_page(name: str) -> None:
    found = headings(PAGES[name])
    assert len(found) == len(set(found))


@pytest.mark.parametrize("name", PAGES)
def test_links_point_to_existing_targets(app: Flask, name: str) -> None:
    routes = app.url_map.bind("localhost")
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)", PAGES[name]):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target) or (target.startswith("/") and routes.test(path)):
            continue
        file = (PROJECT / name).parent / path if path else PROJECT / name
        if not file.is_file() or (anchor and anchor not in headings(file.read_text())):
            dead.append(target)
    assert dead == []


def test_every_page_is_in_the_contents_and_linked_from_the_readme() -> None:
    pages = {file.stem for file in FILES[1:]}
    assert {name for group in GROUPS.values() for name in group} == pages | {README_PAGE, REFERENCE}
    assert [name for name in pages if f"(docs/{name}.md)" not in README] == []


def test_moved_sections_exist_only_at_their_new_location() -> None:
    for former, moved in MOVED_SECTIONS.items():
        assert set(headings(PAGES[f"docs/{former}.md"])).isdisjoint(moved), former
        for target in moved.values():
            name, _, anchor = target.partition("#")
            assert not anchor or anchor in headings(PAGES[f"docs/{name}.md"]), target


ROOTS = ("app", "backends", "benchmarks", "deploy", "docs", "schemas", "tests", "validation")


IN_RECIPES = {"contact_email", "list_field_names", "min_score", "min_words"}
"""Names of things that the recipes add."""


@pytest.mark.parametrize("name", ["docs/architecture.md", "docs/contributing.md"])
def test_mentioned_functions_and_fields_exist(name: str) -> None:
    folders = [PROJECT / root for root in ("app", "backends", "benchmarks", "deploy", "schemas", "tests")]
    files = [
        path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".html", ".js", ".yaml")
    ]
    known = {path.stem for path in files} | set(re.findall(r"\w+", "\n".join(path.read_text() for path in files)))
    prose = re.sub(r"```.*?```", "", PAGES[name], flags=re.DOTALL)
    named = {word for code in re.findall(r"`([^`]+)`", prose) for word in re.findall(r"\w+_\w+", code)}
    assert sorted(named - IN_RECIPES - known) == []


@pytest.mark.parametrize("name", PAGES)
def test_mentioned_paths_exist(name: str) -> None:
    """Placeholders, paths of the recipes' example engine, and files that operators create need not exist."""
    ignored = [line.rstrip("/") for line in (PROJECT / ".gitignore").read_text().splitlines()]
    named = re.findall(rf"(?<![\w/.])((?:{'|'.join(ROOTS)})/[\w./<>-]*)", PAGES[name])
    missing = [path for path in named if not (PROJECT / path.rstrip(".")).exists() and path.rstrip("/") not in ignored]
    assert [path for path in missing if "<" not in path and "example" not in path] == []


def test_documented_language_count_matches_the_stemmers() -> None:
    stemmed = [language for language in LANGUAGES.values() if language.stemmer]
    for name in ("README.md", "docs/query-language.md", "docs/changelog.md"):
        assert f"{len(stemmed)} languages" in re.sub(r"\s+", " ", PAGES[name])


def test_every_benchmark_has_a_documented_command() -> None:
    helpers = [
        "__init__",
        "bare_flask",
        "connections",
        "constant_engine",
        "crawled_pages",
        "fts5_app",
        "installations",
        "queries",
        "relevance",
        "search_systems",
        "server_costs",
        "sites",
        "typed_queries",
        "unit_costs",
    ]
    scripts = {file.stem for file in (PROJECT / "benchmarks").glob("*.py")}.difference(helpers)
    assert [name for name in sorted(scripts) if f"python -m benchmarks.{name}" not in PAGES["docs/benchmarks.md"]] == []
