"""What a run reads, leaves out, changes, and removes."""

from __future__ import annotations

from tests.services.sources.conftest import Runner, counts
from tests.services.sources.websites import Answer, Website, html


def test_a_website_is_read_by_its_links_and_its_sitemap(runner: Runner, website: Website) -> None:
    website.pages = {
        "/": html("Home", links=["/a", "/b"]),
        "/a": html("A", links=["/", "/c"]),
        "/b": html("B"),
        "/c": html("C"),
        "/listed": html("Listed"),
        "/sitemap.xml": Answer(
            f"<urlset><url><loc>{website.address('/listed')}</loc></url></urlset>".encode(),
            headers={"Content-Type": "application/xml"},
        ),
    }

    run = runner.run(runner.add())

    assert (run.status, run.error) == ("finished", None)
    assert counts(run) == {"found": 5, "indexed": 5}
    assert sorted(runner.documents()) == ["/", "/a", "/b", "/c", "/listed"]
    assert runner.documents()["/a"]["url"] == website.address("/a")


def test_a_second_run_of_an_unchanged_site_fetches_no_body(runner: Runner, website: Website) -> None:
    website.pages = {
        "/": html("Home", links=["/a", "/hidden", "/moved", "/copy"]),
        "/a": html("A", links=["/b"]),
        "/b": html("B", text="The same text on two pages."),
        "/hidden": html("Hidden", links=["/c"], head='<meta name="robots" content="noindex">'),
        "/c": html("C"),
        "/moved": Answer(status=301, headers={"Location": "/target"}),
        "/target": html("Target"),
        "/copy": html("B", text="The same text on two pages."),
    }
    source = runner.add()
    first = runner.run(source)
    before = runner.documents()
    website.forget()

    second = runner.run(source)

    assert website.bodies() == []
    assert counts(first) == {"found": 8, "indexed": 5, "skipped": 3}
    assert counts(second) == {"found": 8, "unchanged": 5, "skipped": 3}
    assert runner.documents() == before
    assert runner.left_out(second) == runner.left_out(first)
    assert sorted(runner.left_out(first).values()) == ["canonical", "duplicate", "noindex"]
