"""The choice of pages to render, and the effects of rendered pages and their requests, with a fake browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from app.crawl.fetch.browser import Browser
from app.crawl.fetch.network import Network
from app.crawl.fetch.page_rendering import BrowserError, BrowserFailed, RenderedPage
from app.crawl.fetch.politeness import Turn
from app.crawl.fetch.values import Fetched, NotIndexed
from app.crawl.run.execution import execute
from app.crawl.run.state import RunControl
from app.crawl.run.visits.rendering import Resources
from app.crawl.run.visits.visitor import HostVisitor
from tests.crawl.run.conftest import FreeTurns, Runner
from tests.crawl.run.websites import Answer, Website

LONG = "The harbor has a text of its own. " * 30
SHELL = "<!doctype html><title>App</title><div id=app></div><script src=/app.js></script>"


@dataclass
class FakeBrowser:
    """Answers with a function of the page's URL, and records which pages it rendered."""

    answer: Callable[[str], str | Exception] = lambda url: SHELL
    navigations: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()
    rendered: list[str] = field(default_factory=list)
    responses: list[str] = field(default_factory=list)

    @contextmanager
    def turn(self, account: int, wait: Callable[[float], object]) -> Iterator[None]:
        yield

    def render(self, page: Fetched, fetch: Callable[[str, float], Fetched]) -> RenderedPage:
        self.rendered.append(page.url)
        for url in self.requests:
            try:
                self.responses.append(fetch(url, float("inf")).body.decode())
            except NotIndexed as error:
                self.responses.append(error.reason)
        answer = self.answer(page.url)
        if isinstance(answer, Exception):
            raise answer
        return RenderedPage(answer, self.navigations)


@pytest.fixture
def fake() -> FakeBrowser:
    return FakeBrowser()


@pytest.fixture
def rendering(runner: Runner, fake: FakeBrowser) -> Iterator[Runner]:
    with closing(Network(private_addresses=False)) as public:
        parts = replace(runner.parts, browser=cast(Browser, fake), public_network=public)
        yield replace(runner, parts=parts)


def html(body: str) -> Answer:
    return Answer(body.encode(), headers={"Content-Type": "text/html; charset=utf-8"})


def page(text: str, links: str = "") -> str:
    return f"<!doctype html><title>{text[:20]}</title><main><p>{text}</p>{links}</main>"


def drawn_paths(fake: FakeBrowser, website: Website) -> list[str]:
    return [url.removeprefix(website.url) for url in fake.rendered]


@pytest.mark.parametrize(
    ("sent", "modes"),
    [
        (SHELL, {"auto", "always"}),
        (page(LONG) + "<script src=/app.js></script>", {"always"}),
        (page("Short."), set()),
        (page("Short.") + "<script type='application/ld+json'>{}</script>", set()),
        (f"<meta name=robots content=noindex>{SHELL}", set()),
    ],
)
def test_render_option_of_the_source_selects_the_rendered_pages(
    rendering: Runner, fake: FakeBrowser, website: Website, sent: str, modes: set[str]
) -> None:
    fake.answer = lambda url: page("Rendered text.")
    for mode in ("never", "auto", "always"):
        website.pages[f"/{mode}"] = html(sent)
        run = rendering.run(rendering.add(f"/{mode}", render=mode))
        assert drawn_paths(fake, website) == ([f"/{mode}"] if mode in modes else [])
        assert run.rendered == len(fake.rendered)
        fake.rendered.clear()


def test_automatic_rendering_stops_after_several_pages_without_more_text(
    rendering: Runner, fake: FakeBrowser, website: Website
) -> None:
    for number in range(12):
        links = f"<a href=/{number + 1}>next</a>"
        website.pages[f"/{number}"] = html(page(f"Text {number}.", links) + "<script>1</script>")
    fake.answer = lambda url: website.pages[url.removeprefix(website.url)].body.decode()
    run = rendering.run(rendering.add("/0"))
    assert (run.indexed, run.rendered) == (12, 5)


def test_page_that_cannot_be_rendered_keeps_its_text(rendering: Runner, fake: FakeBrowser, website: Website) -> None:
    website.pages["/"] = html(page("Start.", "<a href=/app>app</a>"))
    website.pages["/app"] = html(SHELL)
    fake.answer = lambda url: page("Rendered text.")
    source = rendering.add("/")
    rendering.run(source)
    fake.answer = lambda url: BrowserError("The page takes too long to render.")
    run = rendering.run(source)
    assert rendering.left_out(run) == {"/app": "not_rendered"}
    assert rendering.documents()["/app"]["content"] == "Rendered text."


def test_page_with_text_is_read_as_sent_if_it_cannot_be_rendered(
    rendering: Runner, fake: FakeBrowser, website: Website
) -> None:
    website.pages["/"] = html(page(LONG) + "<script>while (true);</script>")
    fake.answer = lambda url: BrowserError("The page takes too long to render.")
    assert rendering.run(rendering.add("/", render="always")).indexed == 1


@pytest.mark.parametrize(
    ("error", "reason"),
    [(BrowserError("The page cannot be read."), "not_rendered"), (BrowserFailed("It died."), "browser_failed")],
)
def test_report_does_not_blame_the_page_for_a_failed_browser(
    rendering: Runner, fake: FakeBrowser, website: Website, error: BrowserError, reason: str
) -> None:
    links = "".join(f"<a href=/{number}>{number}</a>" for number in range(8))
    website.pages["/"] = html(page("Start.", links))
    website.pages |= {f"/{number}": html(SHELL) for number in range(8)}
    fake.answer = lambda url: error
    run = rendering.run(rendering.add("/"))
    # Also for the pages after the fifth, for which the browser is not tried.
    assert rendering.left_out(run) == {f"/{number}": reason for number in range(8)}
    assert (run.error or {}).get("code") == ("incomplete" if reason == "browser_failed" else None)


def test_run_with_slow_pages_stops_using_the_browser_and_a_continued_run_does_so_too(
    rendering: Runner, fake: FakeBrowser, website: Website, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.crawl.run.visits.rendering.QUICK_SECONDS", -400.0)
    website.pages = {f"/{number}": html(SHELL) for number in range(10)}
    links = "".join(f"<a href=/{number}>{number}</a>" for number in range(10))
    website.pages["/"] = html(page("Start.", links))
    fake.answer = lambda url: page(f"Text of {url}.")
    source = rendering.add("/")
    run_id = rendering.request(source)
    control = RunControl()

    def interrupt(path: str) -> None:
        if path == "/5":
            control.interrupt()

    website.before = interrupt
    execute(rendering.parts, rendering.claim(), control)
    website.before = lambda path: None
    slow_seconds = rendering.load(run_id).slow_seconds
    execute(rendering.parts, rendering.claim(), RunControl())

    assert slow_seconds > 900
    # The third page was begun before the second one had exceeded the limit.
    assert 3 <= len(fake.rendered) <= 4
    run = rendering.load(run_id)
    assert set(rendering.left_out(run).values()) == {"not_rendered"}
    assert (run.status, run.indexed) == ("finished", 1 + len(fake.rendered))


def test_resources_of_a_stopped_run_are_not_fetched(rendering: Runner, website: Website) -> None:
    parts = rendering.parts
    assert parts.public_network is not None
    control = RunControl()
    control.cancel()
    source = rendering.add("/")
    visitor = HostVisitor(parts.network, BusyTurns(), source, "bot", control.wait)
    resources = Resources(visitor, source, "bot", parts.network, parts.public_network)
    with pytest.raises(NotIndexed) as refusal:
        resources.fetch(website.address("/data.json"), website.address("/"), float("inf"))
    assert refusal.value.reason == "cancelled"


class BusyTurns(FreeTurns):
    """Always asks to wait, except for robots.txt, which comes first."""

    taken = 0

    def take(self, host: str, *, crawl_delay: float = 0.0) -> Turn | float:
        self.taken += 1
        return super().take(host) if self.taken == 1 else 1.0


def test_repeatedly_failing_browser_is_not_tried_for_every_page(
    rendering: Runner, fake: FakeBrowser, website: Website
) -> None:
    links = "".join(f"<a href=/{number}>{number}</a>" for number in range(12))
    website.pages["/"] = html(page("Start.", links))
    website.pages |= {f"/{number}": html(SHELL) for number in range(12)}
    fake.answer = lambda url: BrowserError("The browser cannot be started.")
    run = rendering.run(rendering.add("/"))
    assert (run.indexed, run.failed) == (1, 12)
    assert 5 <= len(fake.rendered) <= 6  # Two threads read pages.


def test_fragments_that_are_routes_become_pages_and_others_do_not(
    rendering: Runner, fake: FakeBrowser, website: Website
) -> None:
    website.pages["/"] = html(SHELL)
    routes = ("#/a", "#!/b", "#/a#c", "#c", "#/", "#/a?id=tides")
    links = "".join(f"<a href='{route}'>{route}</a>" for route in routes)
    heading = "<h2 id=tides><a href='#/a?id=tides'>Tides</a></h2><p>They come and go.</p>"

    def render(url: str) -> str:
        route = url.partition("#")[2]
        canonical = f"<link rel=canonical href='{website.url}/'>"
        return canonical + page(f"Text of {route or 'the start'}.", links + (heading if route == "/a" else ""))

    fake.answer = render
    run = rendering.run(rendering.add("/"))
    documents = rendering.documents()
    assert run.error is None
    assert {"/", "/#/a", "/#!/b"} <= set(documents)
    assert "/#c" not in documents
    assert documents["/#/a"]["url"] == website.address("/#/a")
    assert "sections" not in documents["/#/a"]


def test_rendered_page_is_read_again_even_if_its_file_is_unchanged(
    rendering: Runner, fake: FakeBrowser, website: Website
) -> None:
    website.pages["/"] = html(SHELL)
    fake.answer = lambda url: page("Old text.")
    source = rendering.add("/")
    rendering.run(source)
    fake.answer = lambda url: page("New text.")
    assert rendering.run(source).indexed == 1
    assert rendering.documents()["/"]["content"] == "New text."


def test_pages_read_without_a_browser_are_rendered_by_the_next_run_with_one(
    runner: Runner, rendering: Runner, fake: FakeBrowser, website: Website
) -> None:
    website.pages["/"] = html(SHELL)
    source = runner.add("/")
    assert runner.left_out(runner.run(source)) == {"/": "empty"}
    fake.answer = lambda url: page("Rendered text.")
    assert rendering.run(source).indexed == 1


def test_urls_that_scripts_navigate_to_are_followed(rendering: Runner, fake: FakeBrowser, website: Website) -> None:
    website.pages["/"] = html(SHELL)
    website.pages["/en/"] = html(page("Welcome."))
    fake.navigations = (website.address("/en/"), "mailto:ann@example.com")
    rendering.run(rendering.add("/"))
    assert set(rendering.documents()) == {"/en/"}


def test_resources_obey_robots_txt_and_address_checks_and_are_fetched_once(
    rendering: Runner, fake: FakeBrowser, website: Website
) -> None:
    website.pages["/robots.txt"] = Answer(b"User-agent: *\nDisallow: /private", headers={"Content-Type": "text/plain"})
    website.pages["/"] = html(SHELL)
    website.pages["/app.js"] = Answer(b"script", headers={"Content-Type": "text/javascript"})
    website.pages["/private/data.json"] = Answer(b"secret")
    other = website.url.replace("127.0.0.1", "127.0.0.2")
    paths = ("/app.js", "/app.js", "/private/data.json", "/missing.json")
    fake.requests = (*map(website.address, paths), f"{other}/app.js", "http://169.254.169.254/latest/meta-data/")
    rendering.run(rendering.add("/"))
    assert fake.responses == ["script", "script", "robots", "http_404", "private_address", "private_address"]
    assert website.bodies().count("/app.js") == 1


def test_headers_of_the_source_are_sent_only_for_pages_of_its_own_origin(
    rendering: Runner, fake: FakeBrowser, website: Website
) -> None:
    website.pages |= {"/": html(SHELL), "/data.json": Answer(b"data")}
    fake.requests = (website.address("/data.json"),)
    rendering.run(rendering.add("/", headers={"Authorization": "Basic secret"}))
    assert all(sent.get("authorization") == "Basic secret" for sent in website.sent)

    parts = rendering.parts
    assert parts.public_network is not None
    source = rendering.add("/other", headers={"Authorization": "Basic secret"})
    visitor = HostVisitor(parts.network, parts.turns, source, "bot", lambda seconds: None)
    resources = Resources(visitor, source, "bot", parts.network, parts.public_network)
    visitor.robots.rules(website.url)
    website.sent.clear()
    other_page = website.url.replace("http:", "https:") + "/"
    resources.fetch(website.address("/data.json"), other_page, float("inf"))
    assert website.sent
    assert not any("authorization" in sent for sent in website.sent)


def test_browser_package_is_not_loaded_without_the_browser_setting(runner: Runner, website: Website) -> None:
    import subprocess
    import sys

    code = "import sys, app.commands.crawl; sys.exit(any(name.startswith('playwright') for name in sys.modules))"
    done: Any = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == 0
