"""The documentation on the service itself."""

from __future__ import annotations

import json
import re

import pytest
from flask import Flask
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from app.documentation import anchor_of, documentation_files
from app.pages.docs.markdown import render_markdown
from app.pages.docs.schema_tables import describe_type, examples_of
from app.web.openapi import document
from tests.pages.people import Person


def test_every_operation_is_described_with_an_example(app: Flask, passer_by: Person) -> None:
    shown = passer_by.go("/docs")
    with app.app_context():
        paths = document()["paths"]
    commands = [found.raw_text for found in shown.all("code")]
    count = 0
    for path, item in paths.items():
        for verb, operation in item.items():
            if verb == "parameters":
                continue
            count += 1
            heading = shown.one("h4", id=f"operation-{operation['operationId']}")
            assert heading.text.startswith(f"{verb.upper()} {path}")
            example = re.compile(r'curl (-X \w+ )?"\$BASE' + re.sub(r"\\{[^}]+\\}", "[^/]+", re.escape(path)) + r'["?]')
            assert any(example.match(text) for text in commands), path
    assert count > 30


def test_every_schema_is_a_table(app: Flask, passer_by: Person) -> None:
    shown = passer_by.go("/docs")
    with app.app_context():
        schemas = document()["components"]["schemas"]
    for name in schemas:
        assert shown.one("h4", id=f"schema-{name}").text == name


def test_examples_are_what_the_schemas_accept(app: Flask) -> None:
    with app.app_context():
        described = document()
    registry = Registry().with_resource("urn:openapi", Resource(contents=described, specification=DRAFT202012))
    checked = 0
    for path, item in described["paths"].items():
        for verb, operation in item.items():
            if verb == "parameters":
                continue
            schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            if schema is None:
                continue
            checked += 1
            example = examples_of(schema, described["components"]["schemas"])
            absolute = json.loads(json.dumps(schema).replace('"#/', '"urn:openapi#/'))
            errors = [e.message for e in Draft202012Validator(absolute, registry=registry).iter_errors(example)]
            assert errors == [], f"{verb} {path}: {example}"
    assert checked > 12


def test_every_page_of_the_documentation_is_linked(passer_by: Person) -> None:
    shown = passer_by.go("/docs")
    links = {found.attributes["href"] for found in shown.all("a")}
    for name in documentation_files():
        assert f"/docs/{name}".rstrip("/") in links
        passer_by.go(f"/docs/{name}".rstrip("/"))
        assert passer_by.response.status_code == 200
        for found in passer_by.page.all("a"):
            href = found.attributes["href"]
            if href.startswith("/docs/"):
                assert href.partition("#")[0].removeprefix("/docs/") in documentation_files(), href


def test_pictures_are_shown(passer_by: Person) -> None:
    shown = passer_by.go("/docs")
    sources = [found.attributes["src"] for found in shown.one("article").all("img")]
    assert sources
    for source in sources:
        response = passer_by.call("GET", source)
        assert (response.status_code, response.content_type) == (200, "image/png")
        assert response.data.startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["nope.png", "..", "%2e%2e%2fREADME.md", "..%2f..%2fREADME.md", "%00"])
def test_other_pictures_are_404(passer_by: Person, name: str) -> None:
    assert passer_by.call("GET", f"/docs/images/{name}").status_code == 404


@pytest.mark.parametrize("name", ["nope", "..", "%2e%2e", "engines.md", "..%2fREADME", "README", "%00"])
def test_other_names_are_404(passer_by: Person, name: str) -> None:
    assert passer_by.call("GET", f"/docs/{name}").status_code == 404


def test_the_page_of_the_box_is_documentation_that_offers_to_try_it(app: Flask, passer_by: Person) -> None:
    shown = passer_by.go("/docs/widget")
    titles = [heading.text for heading in shown.all("h2")]
    assert titles.index("Try it") < titles.index("Options")
    assert "hidden" in shown.one("section", id="try-it").attributes, "nothing is offered that only a script can do"
    assert not shown.all("style")
    assert all(not script.raw_text.strip() for script in shown.all("script"))


def test_who_has_sites_may_choose_one_to_try_the_box_on(person: Person, passer_by: Person) -> None:
    def sites(reader: Person) -> list[str]:
        chosen = [select for select in reader.go("/docs/widget").all("select") if select.attributes.get("id") == "try-site"]
        return [option.text for select in chosen for option in select.all("option")]

    assert len(sites(person)) == 1
    assert sites(passer_by) == []


def test_markdown_shows_html_as_text_and_leaves_comments_out() -> None:
    shown = render_markdown("# A *b* `c`\n<!-- gone -->\n<script>alert(1)</script>\n\n[x](javascript:alert(1))\n").html
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert "gone" not in shown
    assert 'href="javascript' not in shown
    assert '<h1 id="a-b-c">' in shown


def test_markdown_links_between_files_lead_to_pages() -> None:
    shown = render_markdown(
        "[a](docs/engines.md#size) [b](engines.md) [c](../README.md#keys) [d](https://a.example/x.md) [e](#x)"
    ).html
    hrefs = re.findall(r'href="([^"]+)"', shown)
    assert hrefs == ["/docs/engines#size", "/docs/engines", "/docs#keys", "https://a.example/x.md", "#x"]


def test_anchors_are_made_of_headings() -> None:
    assert anchor_of("A tour of the `API`!") == "a-tour-of-the-api"


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string", "minLength": 1, "maxLength": 100}, "string, 1 to 100 characters"),
        ({"type": ["string", "null"], "format": "date-time"}, "ISO 8601 date-time or null"),
        ({"type": "integer", "minimum": 1, "maximum": 100}, "integer from 1 to 100"),
        ({"type": "integer", "minimum": 0, "maximum": 2147483647}, "integer from 0"),
        ({"type": "array", "items": {"$ref": "#/components/schemas/Hit"}}, "list of Hit"),
        ({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, "string or list of string"),
        ({"enum": ["a", "b", None]}, "a | b | null"),
        ({}, "any value"),
    ],
)
def test_types_are_said_in_words(schema: dict[str, object], words: str) -> None:
    assert describe_type(schema) == words
