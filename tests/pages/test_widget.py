"""Serving the search box script; tests/browser covers its behavior."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from flask import Flask

from app.documentation import documentation_files
from app.pages.search_box import ASK_SCRIPT, RELATED_SCRIPT, RESULTS_SCRIPT, SCRIPT, TEXTS_SCRIPT
from app.pages.search_box import TEXTS as BOX_TEXTS
from backends.languages import LANGUAGES

# The sources of the minified scripts; tests/clients/test_minified_widget.py compares both.
TEXT = SCRIPT.with_name("widget.js").read_text()
RESULTS_TEXT = RESULTS_SCRIPT.with_name("widget-results.js").read_text()
ASK_TEXT = ASK_SCRIPT.with_name("widget-ask.js").read_text()
RELATED_TEXT = RELATED_SCRIPT.with_name("widget-related.js").read_text()
TEXTS = TEXTS_SCRIPT.with_name("widget-texts.js").read_text()
DOCUMENTED = documentation_files()["search-box"].read_text()

scripts = pytest.mark.parametrize(
    ("path", "script"),
    [
        ("/widget.js", SCRIPT),
        ("/widget-ask.js", ASK_SCRIPT),
        ("/widget-related.js", RELATED_SCRIPT),
        ("/widget-results.js", RESULTS_SCRIPT),
        ("/widget-texts.js", TEXTS_SCRIPT),
    ],
)


@scripts
def test_widget_script_can_be_loaded_by_any_site_and_cached_briefly(app: Flask, path: str, script: Path) -> None:
    response = app.test_client().get(path, headers={"Origin": "https://museum.example.com"})
    assert response.status_code == 200
    assert response.content_type == "text/javascript; charset=utf-8"
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert response.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert "Access-Control-Allow-Credentials" not in response.headers
    assert "Set-Cookie" not in response.headers
    assert response.headers["Cache-Control"] == "public, max-age=300"
    assert response.data == script.read_bytes()


@scripts
def test_unchanged_widget_script_returns_304(app: Flask, path: str, script: Path) -> None:
    client = app.test_client()
    tag = client.get(path).headers["ETag"]
    response = client.get(path, headers={"If-None-Match": tag})
    assert (response.status_code, response.data) == (304, b"")
    assert client.get(path, headers={"If-None-Match": '"another"'}).status_code == 200


@scripts
def test_widget_script_is_at_most_20_kb_compressed(app: Flask, path: str, script: Path) -> None:
    sent = app.test_client().get(path, headers={"Accept-Encoding": "gzip"})
    assert sent.headers["Content-Encoding"] == "gzip"
    assert len(sent.data) <= 20_000


@scripts
def test_widget_script_uses_no_unsafe_html_cookies_or_session_storage(path: str, script: Path) -> None:
    for dangerous in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "document.cookie",
        "sessionStorage",
        "indexedDB",
    ):
        assert dangerous not in script.read_text()


def test_widget_has_all_texts_in_every_search_language() -> None:
    expected = _names(TEXT)
    labels = re.search(r'LABELS = Object.fromEntries\("([^"]+)"', TEXT)
    english = re.search(r'ENGLISH = "([^"]+)"', TEXT)
    assert labels is not None
    assert english is not None
    named = dict(each.split(" ", 1) for each in labels[1].split("|"))
    texts = dict(re.findall(r'^  ([a-z]{2}): "([^"]+)",$', TEXTS, re.MULTILINE)) | {"en": english[1]}
    assert set(texts) == set(named) == set(LANGUAGES)
    assert all(label.strip() for label in named.values())
    for code, line in texts.items():
        found = dict(zip(expected, line.split("|"), strict=True))
        assert all(text.strip() for text in found.values()), code
        holders = {name: re.findall(r"\{(\w+)\}", text) for name, text in found.items()}
        assert {name: held for name, held in holders.items() if held} == {
            "many": ["n"],
            "none": ["q"],
            "elsewhere": ["context"],
            "corrected": ["q"],
        }, code


def test_lists_of_related_pages_have_a_heading_in_every_search_language() -> None:
    headings = re.search(r'HEADINGS = Object.fromEntries\("([^"]+)"', RELATED_TEXT)
    assert headings is not None
    named = dict(entry.split(" ", 1) for entry in headings[1].split("|"))
    assert set(named) == set(LANGUAGES)
    assert all(text.strip() for text in named.values())


def test_widget_results_view_has_all_texts_in_every_search_language() -> None:
    texts = dict(re.findall(r'^  ([a-z]{2}): "([^"]+)",$', RESULTS_TEXT, re.MULTILINE))
    assert set(texts) == set(LANGUAGES)
    for code, line in texts.items():
        found = dict(zip(_names(RESULTS_TEXT), line.split("|"), strict=True))
        assert all(text.strip() for text in found.values()), code
        holders = {name: sorted(re.findall(r"\{(\w+)\}", text)) for name, text in found.items()}
        assert {name: held for name, held in holders.items() if held} == {"shown": ["all", "n"]}, code


def test_widget_view_for_questions_has_all_texts_in_every_search_language() -> None:
    texts = dict(re.findall(r'^  ([a-z]{2}): "([^"]+)",$', ASK_TEXT, re.MULTILINE))
    assert set(texts) == set(LANGUAGES)
    results = dict(re.findall(r'^  ([a-z]{2}): "([^"]+)",$', RESULTS_TEXT, re.MULTILINE))
    for code, line in texts.items():
        found = dict(zip(_names(ASK_TEXT), line.split("|"), strict=True))
        assert all(text.strip() for text in found.values()), code
        assert not re.search(r"[{}]", line)
        of_results = dict(zip(_names(RESULTS_TEXT), results[code].split("|"), strict=True))
        # One name, one text: the attribute `texts` of a page replaces both.
        assert [found[name] for name in ("yes", "no")] == [of_results[name] for name in ("yes", "no")], code


def _names(script: str) -> list[str]:
    names = re.search(r'NAMES = "([^"]+)"', script)
    assert names is not None
    return names[1].split()


class TestDocumentation:
    """docs/search-box.md lists everything that the script supports, and nothing else."""

    def test_documentation_lists_all_attributes_and_options(self) -> None:
        body = re.search(r"const settingsOf = .*?\n\}\);", TEXT, re.DOTALL)
        assert body is not None
        settings = set(re.findall(r"\boptions\.(\w+)", body[0])) | {"target"}
        attributes = {re.sub(r"-(\w)", lambda match: match[1].upper(), name) for name in _rows("data-([a-z-]+)")}
        functions = set(_rows(r"(texts|clientInfo|transform|onSelect|renderHit)"))
        assert attributes | functions == settings

    def test_documentation_lists_all_events(self) -> None:
        assert set(_rows("site-search:([a-z]+)")) == set(re.findall(r'\bemit\("(\w+)"', TEXT))

    def test_documentation_lists_all_css_variables(self) -> None:
        colors = re.search(r"COLORS = \{(.*?)\};", TEXT, re.DOTALL)
        assert colors is not None
        assert set(_rows("--site-search-([a-z]+)")) == {*re.findall(r"(\w+): \[", colors[1]), "font", "radius"}

    def test_documentation_lists_all_parts(self) -> None:
        made = set(re.findall(r'(?:\bpart: |\bspanOf\()"(\w+)"', TEXT + RESULTS_TEXT + ASK_TEXT))
        assert set(_rows("([a-z]+)", "part")) == made

    def test_documentation_and_designer_list_all_texts(self) -> None:
        assert set(_rows("([a-zA-Z]+)", "text")) == {"label", *_names(TEXT), *_names(RESULTS_TEXT), *_names(ASK_TEXT)}
        for name, english in BOX_TEXTS.items():
            assert f"| `{name}` | {english} |" in DOCUMENTED
        named = ["label", *_names(TEXT), *_names(RESULTS_TEXT), *_names(ASK_TEXT)]
        english = [re.findall(r'ENGLISH = "([^"]+)"', TEXT)[0]]
        english += [re.findall(r'^  en: "([^"]+)"', text, re.M)[0] for text in (RESULTS_TEXT, ASK_TEXT)]
        texts = dict(zip(named, ["Search", *"|".join(english).split("|")], strict=True))
        assert list(BOX_TEXTS.items()) == list(texts.items())


def _rows(name: str, heading: str = "") -> list[str]:
    """Return the names in the first column of the documentation's tables, optionally only those with this heading."""
    found: list[str] = []
    for table in re.findall(r"(?:^\|.*\n)+", DOCUMENTED, re.MULTILINE):
        lines = table.splitlines()
        if heading in ("", lines[0].split("|")[1].strip()):
            found += [match[1] for line in lines[2:] if (match := re.match(rf"\| `{name}` \|", line))]
    return found
