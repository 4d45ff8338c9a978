"""A site made with docsify, which renders Markdown files at routes such as ``#/guide``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crawl.run.conftest import Runner
from tests.crawl.run.websites import Answer, Website

INDEX = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Harbor handbook</title></head>
<body><div id="app">Loading …</div>
<script>window.$docsify = {name: 'Harbor handbook', loadSidebar: true, subMaxLevel: 2}</script>
<script src="/docsify.js"></script></body></html>"""


@pytest.fixture
def docsify_site(website: Website, packages: Path) -> Website:
    script = (packages / "docsify/lib/docsify.min.js").read_bytes()
    for path, text, kind in (
        ("/", INDEX, "text/html"),
        ("/README.md", "# Harbor handbook\n\nWhere ships moor, and what the pilots need to know.", "text/markdown"),
        ("/guide.md", "# Piloting\n\n## Tides\n\nA barque enters only with the flood.", "text/markdown"),
        ("/fees.md", "# Fees\n\nMooring costs eleven crowns a day.", "text/markdown"),
        ("/_sidebar.md", "- [Piloting](guide.md)\n- [Fees](fees.md)", "text/markdown"),
    ):
        website.pages[path] = Answer(text.encode(), headers={"Content-Type": f"{kind}; charset=utf-8"})
    website.pages["/docsify.js"] = Answer(script, headers={"Content-Type": "text/javascript"})
    return website


def test_each_route_becomes_a_page_with_its_own_title_and_text(runner: Runner, docsify_site: Website) -> None:
    run = runner.run(runner.add())
    documents = runner.documents()
    assert run.error is None
    assert sorted(documents) == ["/", "/#/fees", "/#/guide"]
    assert "flood" in documents["/#/guide"]["content"]
    assert documents["/#/guide"]["url"] == docsify_site.address("/#/guide")
    assert [documents[path]["title"] for path in ("/#/fees", "/#/guide")] == ["Fees", "Piloting"]
    assert (run.indexed, run.rendered) == (3, 3)


def test_scripts_are_requested_once_for_all_pages_of_a_run(runner: Runner, docsify_site: Website) -> None:
    runner.run(runner.add())
    assert docsify_site.bodies().count("/docsify.js") == 1


def test_changed_file_behind_an_unchanged_page_is_detected(runner: Runner, docsify_site: Website) -> None:
    source = runner.add()
    runner.run(source)
    docsify_site.pages["/fees.md"] = Answer(b"# Fees\n\nMooring is free on Sundays.")
    run = runner.run(source)
    assert (run.indexed, run.unchanged) == (1, 2)
    assert "free on Sundays" in runner.documents()["/#/fees"]["content"]


def test_source_that_never_renders_reads_pages_as_sent(runner: Runner, docsify_site: Website) -> None:
    run = runner.run(runner.add(render="never"))
    assert {path: document["content"] for path, document in runner.documents().items()} == {"/": "Loading …"}
    assert (run.indexed, run.rendered) == (1, 0)
