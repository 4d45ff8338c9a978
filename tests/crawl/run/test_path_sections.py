"""Pages without a section get one from their path if at least three pages share its first segment."""

from __future__ import annotations

from app.crawl.run.page_documents import MAX_SEGMENTS, PathSections
from tests.crawl.run.conftest import Runner, counts
from tests.crawl.run.websites import Website, html

SITE = "https://www.example.com"


def test_path_segment_shared_by_three_pages_becomes_a_section() -> None:
    sections = PathSections(SITE + path for path in ("/docs", "/docs/a", "/docs/b?c=d", "/blog/a", "/blog/b", "/"))

    assert sections.section(f"{SITE}/docs/x") == "docs"
    assert sections.section(f"{SITE}/blog/x") == ""
    sections.add(f"{SITE}/blog/c")
    assert sections.section(f"{SITE}/blog/x") == "blog"
    assert sections.section(f"{SITE}/") == ""


def test_section_from_the_path_is_url_decoded() -> None:
    sections = PathSections([f"{SITE}/%C3%BCber%20uns/{number}" for number in range(3)])

    assert sections.section(f"{SITE}/%C3%BCber%20uns/") == "über uns"


def test_number_of_counted_path_segments_is_bounded() -> None:
    sections = PathSections(f"{SITE}/{number}" for number in range(MAX_SEGMENTS + 10))

    for _ in range(3):
        sections.add(f"{SITE}/one-more/")
    assert sections.section(f"{SITE}/one-more/") == ""


def section_of(runner: Runner) -> dict[str, object]:
    return {path: document.get("section") for path, document in runner.documents().items()}


def test_unchanged_pages_gain_and_lose_the_section_of_their_path(runner: Runner, website: Website) -> None:
    own = '<meta name="site-search:section" content="Own">'
    website.pages = {
        "/": html("Home", links=["/docs/a", "/docs/b", "/about"]),
        "/docs/a": html("A"),
        "/docs/b": html("B", head=own),
        "/about": html("About"),
    }
    source = runner.add()
    runner.run(source)
    assert section_of(runner) == {"/": None, "/docs/a": None, "/docs/b": "Own", "/about": None}

    website.pages["/"] = html("Home", links=["/docs/a", "/docs/b", "/docs/c", "/about"])
    website.pages["/docs/c"] = html("C")
    second = runner.run(source)
    assert section_of(runner) == {"/": None, "/docs/a": "docs", "/docs/b": "Own", "/docs/c": "docs", "/about": None}
    assert counts(second) == {"found": 5, "indexed": 1, "unchanged": 4}

    website.forget()
    third = runner.run(source)
    assert counts(third) == {"found": 5, "unchanged": 5}
    assert section_of(runner)["/docs/a"] == "docs"

    website.pages["/"] = html("Home", links=["/docs/a", "/docs/b", "/about"])
    del website.pages["/docs/c"]
    runner.run(source)
    runner.run(source)
    assert section_of(runner)["/docs/a"] is None


def test_section_that_a_page_declares_replaces_the_section_of_its_path(runner: Runner, website: Website) -> None:
    website.pages = {f"/docs/{number}": html(f"Page {number}") for number in range(3)}
    website.pages["/"] = html("Home", links=list(website.pages))
    source = runner.add()
    runner.run(source)
    assert section_of(runner)["/docs/1"] == "docs"

    website.pages["/docs/1"] = html("Page 1", head='<meta name="site-search:section" content="Own">')
    runner.run(source)

    assert section_of(runner) == {"/": None, "/docs/0": "docs", "/docs/1": "Own", "/docs/2": "docs"}


def test_field_rules_apply_to_all_pages_of_a_run(runner: Runner, website: Website) -> None:
    website.pages = {
        "/": html("Home", links=["/docs/1.0/a", "/docs/2.0/a", "/notes.txt"]),
        "/docs/1.0/a": html("A", text="Once."),
        "/docs/2.0/a": html("A", text="Twice.", head='<meta name="site-search:version" content="two">'),
        "/notes.txt": html("", text="x"),
    }
    website.pages["/notes.txt"].headers = {"Content-Type": "text/plain"}
    website.pages["/notes.txt"].body = b"Plain notes about boats."
    rules = [{"path": "/docs/{version}/*", "set": {"version": "{version}"}}, {"name": "label", "selector": "title"}]

    runner.run(runner.add(fields=rules))

    documents = runner.documents()
    assert {path: (found.get("version"), found["page"]) for path, found in documents.items()} == {
        "/": (None, "/"),
        "/docs/1.0/a": ("1.0", "/docs/a"),
        "/docs/2.0/a": ("two", "/docs/a"),
        "/notes.txt": (None, "/notes.txt"),
    }
    assert documents["/docs/1.0/a"]["label"] == "A"
