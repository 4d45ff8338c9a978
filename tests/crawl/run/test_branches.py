"""A run ends branches of a site that bring no new text, and requests a limited number of pages."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.crawl.run import branches, frontier
from app.crawl.run.branches import Branches
from app.crawl.run.outcomes import DiscoveredUrl, Outcome, QueuedPage
from tests.crawl.run.conftest import Runner
from tests.crawl.run.websites import Answer, Website, html

SITE = "https://www.example.com"
LIMIT = 10


class Generated(dict[str, Answer]):
    """Pages of a website that are generated when they are requested."""

    def __init__(self, pages: dict[str, Answer], generate: Callable[[str], Answer | None]):
        super().__init__(pages)
        self._generate = generate

    def get(self, path: str, default: Answer) -> Answer:  # type: ignore[override]
        return super().get(path) or self._generate(path) or default


@pytest.fixture(autouse=True)
def _low_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branches, "MAX_BARREN_REQUESTS", LIMIT)
    monkeypatch.setattr(frontier, "MIN_REQUESTS", 2 * LIMIT)


def deeper(path: str) -> Answer | None:
    """Return a page that links to two deeper ones."""
    if not path.startswith(("/endless/", "/more/")):
        return None
    return html("Deeper", text="The same text everywhere.", links=[f"{path}endless/", f"{path}more/"])


def test_branch_that_only_leads_deeper_ends_with_a_remark(runner: Runner, website: Website) -> None:
    docs = {f"/docs/{n}": html(f"Page {n}", links=[f"/docs/{n + 1}"]) for n in range(3 * LIMIT)}
    website.pages = Generated({"/": html("Home", links=["/docs/0", "/endless/", "/more/"]), **docs}, deeper)
    source = runner.add()

    for _ in range(2):
        website.forget()
        run = runner.run(source)

        assert run.status == "finished"
        left_out = runner.left_out(run)
        assert {path for path, reason in left_out.items() if reason == "endless"} == {"/endless/", "/more/"}
        assert "no_new_text" in left_out.values()
        assert len([path for path, _ in website.asked if "endless" in path or "more" in path]) <= 4 * LIMIT
        assert {f"/docs/{n}" for n in range(3 * LIMIT - 1)} <= set(runner.documents())


def test_combinations_of_parameters_are_stopped_as_a_branch(runner: Runner, website: Website) -> None:
    def facets(path: str) -> Answer | None:
        if path.startswith("/login"):
            return html("Log in")
        number = path.removeprefix("/list?filter=")
        links = [f"/list?filter={number}{digit}" for digit in "12"] + [f"/login?return={number}"]
        return html("List", text="Nothing matches these filters.", links=links)

    website.pages = Generated({"/": html("Home", links=["/list?filter=1"])}, facets)

    run = runner.run(runner.add())

    remarks = {path for path, reason in runner.left_out(run).items() if reason == "endless"}
    assert remarks == {"/list?", "/login?"}


def test_requests_of_a_run_are_limited(runner: Runner, website: Website) -> None:
    start = html("Home", links=[f"/{n}" for n in range(6 * LIMIT)])
    website.pages = Generated({"/": start}, lambda path: html("Copy", text="The same text."))

    run = runner.run(runner.add(max_pages=3))

    assert run.status == "finished"
    assert len(website.asked) == 3 * frontier.REQUESTS_PER_PAGE + len(["/sitemap.xml"])
    assert list(runner.left_out(run).values()).count("max_requests") == 1 + 6 * LIMIT - 3 * frontier.REQUESTS_PER_PAGE


def test_limit_of_requests_keeps_indexed_pages(
    runner: Runner, website: Website, monkeypatch: pytest.MonkeyPatch
) -> None:
    website.pages = {"/": html("Home", links=[f"/{n}" for n in range(3 * LIMIT)])}
    website.pages |= {f"/{n}": html(f"Page {n}") for n in range(3 * LIMIT)}
    source = runner.add(max_pages=10 * LIMIT)
    runner.run(source)
    monkeypatch.setattr(frontier, "REQUESTS_PER_PAGE", 0)
    website.pages["/"] = html("Home", links=[f"/new{n}" for n in range(3 * LIMIT)])
    website.pages |= {f"/new{n}": html(f"New page {n}") for n in range(3 * LIMIT)}

    run = runner.run(source)

    assert run.removed == 0
    assert list(runner.left_out(run).values()).count("max_requests") == LIMIT + 1
    assert len(runner.documents()) == 1 + 3 * LIMIT + 2 * LIMIT - 1


def test_redirects_to_new_texts_do_not_end_a_branch(runner: Runner, website: Website) -> None:
    numbers = range(2 * LIMIT)
    website.pages = {"/": html("Home", links=["/list"]), "/list": html("List", links=[f"/go/{n}" for n in numbers])}
    website.pages |= {f"/go/{n}": Answer(status=302, headers={"Location": f"/text{n}"}) for n in numbers}
    website.pages |= {f"/text{n}": html(f"Text {n}") for n in numbers}

    run = runner.run(runner.add())

    assert set(runner.left_out(run).values()) == {"canonical"}
    assert len(runner.documents()) == 2 + len(numbers)


def page(path: str, depth: int = 2) -> QueuedPage:
    """Return a waiting page."""
    return QueuedPage(SITE + path, depth)


def without_text(queued: QueuedPage, *links: str, reason: str = "duplicate") -> Outcome:
    """Return the outcome of a page that has no new text, with new links."""
    discovered = [DiscoveredUrl(SITE + link, queued.depth + 1) for link in links]
    return Outcome(queued.url, "skipped", reason, discovered=discovered)


def count(watched: Branches, depth: int = 2, reason: str = "duplicate", *links: str) -> list[str | None]:
    """Count as many pages of one folder as end it."""
    pages = [page(f"/a/b/{number}", depth) for number in range(LIMIT)]
    return [watched.add(each, without_text(each, *links, reason=reason), has_text=False) for each in pages]


def test_largest_branch_without_new_text_ends() -> None:
    watched = Branches()

    assert count(watched) == [None] * (LIMIT - 1) + [f"{SITE}/a/"]
    assert watched.skips(page("/a/c"))
    assert not watched.skips(page("/a/c", depth=1))
    assert not watched.skips(page("/b/c"))
    assert Branches([f"{SITE}/a/"]).skips(page("/a/c"))


def test_branch_with_new_text_outside_a_folder_ends_only_in_the_folder() -> None:
    watched = Branches()
    for _ in range(LIMIT - 1):
        watched.add(page("/a/b/x"), without_text(page("/a/b/x")), has_text=False)
        watched.add(page("/a/text"), Outcome(f"{SITE}/a/text", "indexed"), has_text=True)

    assert watched.add(page("/a/b/x"), without_text(page("/a/b/x")), has_text=False) == f"{SITE}/a/b/"


@pytest.mark.parametrize(
    "counted",
    [
        lambda watched: count(watched, 1),  # Pages in sitemaps.
        lambda watched: count(watched, 2, "http_503"),
        lambda watched: count(watched, 2, "noindex", "/posts/new"),  # Pages that only list others.
    ],
)
def test_sitemap_pages_failures_and_new_links_do_not_stop_a_branch(
    counted: Callable[[Branches], list[str | None]],
) -> None:
    assert counted(Branches()) == [None] * LIMIT
