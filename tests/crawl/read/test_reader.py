"""Reading in a separate process returns the same result, and the reader survives crashes of that process."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from app.crawl.fetch.account_turns import AccountTurns
from app.crawl.fetch.values import FieldRules, NotIndexed, Selectors
from app.crawl.read.reader import PageReader, read_page
from tests.crawl.read.office.builders import docx, w_p, xlsx
from tests.crawl.read.samples import fetched, pdf

HOSTILE = {
    "deep": "<div>" * 100_000 + "deep",
    "formatting": "".join(f"<b id={n}>" for n in range(100_000)) + "deep",
    "attributes": "<p " + " ".join(f"a{n}={n}" for n in range(500_000)) + ">deep",
    "unclosed": "<div>" * 20_000 + "<b></div>" * 100_000 + "deep",
    "comments": "<!--" * 1_000_000 + "--><p>deep",
    "entities": "&amp" * 1_000_000 + " deep",
    "names": '<p class="' + "nav-" * 100_000 + " x" * 100_000 + '">deep',
    "lists": "<div class=toc><a href=x>y</a>" * 20_000 + "deep",
    "articles": "<article>" * 50_000 + "deep",
    "links": "".join(f"<a href=/{n}>x</a>" for n in range(100_000)) + "deep",
    "metas": "".join(f"<meta name=site-search:f{n} content=x>" for n in range(50_000)) + "<p>deep",
    "frames": "<div class=sidebar><header>" * 20_000 + "<b class=headertitle>deep",
    "crumbs": "<nav aria-label=breadcrumb><ul>" * 10_000 + "<li>" * 10_000 + "deep",
    "json": f'<script type="application/ld+json">{"[" * 1_000_000}</script><p>deep',
}


@pytest.fixture(scope="module")
def reader() -> Iterator[PageReader]:
    with closing(PageReader()) as reader:
        yield reader


@pytest.mark.parametrize(
    ("body", "content_type"),
    [("<title>Harbor</title><p>Boats", "text/html"), (pdf("Boats"), "application/pdf"), (docx(w_p("Boats")), "")],
)
def test_reader_process_returns_the_same_as_reading_in_process(
    reader: PageReader, body: str | bytes, content_type: str
) -> None:
    assert reader.read(fetched(body, content_type)) == read_page(fetched(body, content_type))


def test_selectors_and_errors_cross_the_process_boundary(reader: PageReader) -> None:
    assert reader.read(fetched("<p>a<b>c</b>"), Selectors(content="b")).content == "c"
    with pytest.raises(NotIndexed) as refusal:
        reader.read(fetched(b"\x89PNG\0", "image/png"))
    assert refusal.value.reason == "not_text"


def test_field_rules_cross_the_process_boundary(reader: PageReader) -> None:
    rules = FieldRules(({"path": "/{lang}*", "set": {"lang": "{lang}"}}, {"name": "bold", "selector": "b"}))

    assert reader.read(fetched("<p>a<b>c</b>"), None, rules).fields["bold"] == "c"


@pytest.mark.parametrize(
    "rule",
    [
        {"selector": "div:has(div:has(div i)) > div:not(:has(b)) ~ div div div i", "all": True},
        {"selector": "div", "all": True},
        {"json_ld": "a.a.a.a", "all": True},
    ],
)
def test_slow_field_rules_fail_only_their_page(rule: dict[str, object]) -> None:
    nested = '{"a":[' * 400 + "1" + "]}" * 400
    html = f'<script type="application/ld+json">{nested}</script>' + "<div>words " * 20_000
    rules = FieldRules(tuple({"name": f"f{number}", **rule} for number in range(50)))

    with closing(PageReader(cpu_seconds=1)) as reader:
        reason, fields = None, {}
        try:
            fields = dict(reader.read(fetched(html), None, rules).fields)
        except NotIndexed as refusal:
            reason = refusal.reason
        assert reason in (None, "timeout", "too_large")
        assert len(str(fields)) < 10_000_000
        assert reader.read(fetched("<p>Boats")).content == "Boats"


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_html_is_read_within_limits(reader: PageReader, name: str) -> None:
    html = HOSTILE[name]

    assert len(reader.read(fetched(html)).content) <= len(html)


def hostile_office_file(name: str) -> bytes:
    match name:
        case "cells":
            return xlsx({"Tides": f"<row>{'<c><v>1</v></c>' * 1_000}</row>" * 1_000})
        case "nested":
            return docx("<w:sdt>" * 900_000 + w_p("deep") + "</w:sdt>" * 900_000)
        case "tables":
            return docx("<w:tbl><w:tr><w:tc>" * 300_000 + w_p("deep") + "</w:tc></w:tr></w:tbl>" * 300_000)
        case "attributes":
            return docx("<w:p " + " ".join(f'a{n}="{n}"' for n in range(500_000)) + "/>" + w_p("deep"))
        case "styles":
            above = '<w:style w:styleId="{}"><w:basedOn w:val="{}"/></w:style>'
            return docx(w_p("a", "1"), styles="".join(above.format(n, n + 1) for n in range(100_000)))
        case "breaks":
            return docx("<w:p><w:r><w:t>deep" + "<w:br/>" * 2_500_000 + "</w:t></w:r></w:p>")
        case "names":
            return docx(w_p("deep") + "".join(f"<w:a{n}/>" for n in range(2_500_000)))
    return xlsx({"deep": ""}, strings="<si/>" * 2_500_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cells", "nested", "tables", "attributes", "styles"])
def test_hostile_office_files_are_read_within_limits(reader: PageReader, name: str) -> None:
    assert reader.read(fetched(hostile_office_file(name), "")).content


@pytest.mark.slow
@pytest.mark.parametrize("name", ["breaks", "names", "strings"])
def test_office_files_with_too_many_elements_are_rejected_and_reader_survives(reader: PageReader, name: str) -> None:
    with pytest.raises(NotIndexed) as refusal:
        reader.read(fetched(hostile_office_file(name), ""))

    assert refusal.value.reason in ("timeout", "too_large")
    assert reader.read(fetched("<p>Boats")).content == "Boats"


def test_page_that_exceeds_the_cpu_limit_times_out_and_reader_survives() -> None:
    endless = "<p><b>x</b></p>" * 500_000
    with closing(PageReader(cpu_seconds=0)) as reader:
        with pytest.raises(NotIndexed) as refusal:
            reader.read(fetched(endless))
        assert refusal.value.reason == "timeout"
        assert reader.read(fetched("<p>Boats")).content == "Boats"


def test_page_that_exceeds_the_wall_clock_limit_times_out() -> None:
    with closing(PageReader(seconds=0.0)) as reader, pytest.raises(NotIndexed) as refusal:
        reader.read(fetched("<p>Boats" * 100_000))

    assert refusal.value.reason == "timeout"


def test_killed_reader_process_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    others = set(multiprocessing.active_children())
    with closing(PageReader()) as reader:
        assert reader.read(fetched("<p>Boats")).content == "Boats"
        [process] = set(multiprocessing.active_children()) - others
        process.kill()
        process.join()
        with pytest.raises(NotIndexed) as refusal:
            reader.read(fetched("<p>Boats"))
        assert refusal.value.reason == "not_text"
        assert "exit code -9" in caplog.text
        assert refusal.value.message == "The file cannot be read."
        assert reader.read(fetched("<p>Boats")).content == "Boats"


NESTED = {
    "feed": b"<rss><channel>" + b"<a>" * 1_500_000,
    "sitemap": b"<urlset>" + b"<a>" * 1_500_000,
}


def test_feeds_sitemaps_and_posts_are_read_in_the_reader_process(reader: PageReader) -> None:
    feed = b"<rss version='2.0'><channel><item><link>https://www.example.com/a</link></item></channel></rss>"
    sitemap = b"<urlset><url><loc>https://www.example.com/a</loc></url></urlset>"
    posts = b'[{"status": "publish", "link": "/a", "content": {"rendered": "<p>Boats"}}]'

    assert reader.read_feed(fetched(feed, "application/rss+xml")) == ("https://www.example.com/a",)
    assert reader.read_sitemap(fetched(sitemap, "application/xml")).pages == ("https://www.example.com/a",)
    assert [post.content for post in reader.read_posts(fetched(posts, "application/json"))] == ["Boats"]
    for read in (reader.read_feed, reader.read_sitemap, reader.read_posts):
        with pytest.raises(NotIndexed) as refusal:
            read(fetched("nothing", "text/plain"))
        assert refusal.value.reason == "bad_source"


@pytest.mark.parametrize("kind", NESTED)
def test_too_deeply_nested_feeds_and_sitemaps_are_rejected_quickly(kind: str) -> None:
    with closing(PageReader(cpu_seconds=4)) as reader, pytest.raises(NotIndexed) as refusal:
        getattr(reader, f"read_{kind}")(fetched(NESTED[kind], "application/xml"))

    assert refusal.value.reason == "bad_source"
    assert "too deep" in refusal.value.message


def test_feed_that_exceeds_the_cpu_limit_times_out_and_reader_survives() -> None:
    items = b"<rss><channel>" + b"<item><a/><a/></item>" * 100_000

    with closing(PageReader(cpu_seconds=0)) as reader:
        with pytest.raises(NotIndexed) as refusal:
            reader.read_feed(fetched(items, "application/xml"))
        assert refusal.value.reason == "timeout"
        assert reader.read(fetched("<p>Boats")).content == "Boats"


def test_accounts_take_turns_at_the_process_by_the_time_of_their_files(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    @contextmanager
    def take(turns: AccountTurns, account: int, wait: Callable[[float], object]) -> Iterator[None]:
        taken.append(account)
        wait(0.0)
        yield

    monkeypatch.setattr(AccountTurns, "take", take)
    waits: list[float] = []
    with closing(PageReader()) as shared:
        readers = [shared.of_account(account, waits.append) for account in (1, 2)]
        for reader in readers:
            assert reader.read(fetched("<p>Boats")).content == "Boats"
        assert readers[0]._process is readers[1]._process
    assert taken == [1, 2]
    assert waits == [0.0, 0.0]
