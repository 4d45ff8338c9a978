"""Reading in a process of its own gives the same, and survives what no process survives."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator

import pytest

from app.crawler.reading.pages import read_page
from app.crawler.reading.reader import PageReader
from app.crawler.values import NotIndexed, Selectors
from tests.crawler.reading.samples import fetched, pdf

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
    "json": f'<script type="application/ld+json">{"[" * 1_000_000}</script><p>deep',
}


@pytest.fixture(scope="module")
def reader() -> Iterator[PageReader]:
    with PageReader() as reader:
        yield reader


@pytest.mark.parametrize(
    ("body", "content_type"), [("<title>Harbor</title><p>Boats", "text/html"), (pdf("Boats"), "application/pdf")]
)
def test_it_reads_as_without_a_process(reader: PageReader, body: str | bytes, content_type: str) -> None:
    assert reader.read(fetched(body, content_type)) == read_page(fetched(body, content_type))


def test_selectors_and_reasons_pass(reader: PageReader) -> None:
    assert reader.read(fetched("<p>a<b>c</b>"), Selectors(content="b")).content == "c"
    with pytest.raises(ValueError, match="selector"):
        reader.read(fetched("<p>a"), Selectors(content="["))
    with pytest.raises(NotIndexed) as refusal:
        reader.read(fetched(b"\x89PNG\0", "image/png"))
    assert refusal.value.reason == "not_text"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_markup_is_read_within_bounds(reader: PageReader, name: str) -> None:
    html = HOSTILE[name]

    assert len(reader.read(fetched(html)).content) <= len(html)


def test_a_page_that_takes_too_long_ends_as_one() -> None:
    endless = "<p><b>x</b></p>" * 500_000
    with PageReader(cpu_seconds=0) as reader:
        with pytest.raises(NotIndexed) as refusal:
            reader.read(fetched(endless))
        assert refusal.value.reason == "timeout"
        assert reader.read(fetched("<p>Boats")).content == "Boats"


def test_a_page_that_waits_too_long_ends_as_one() -> None:
    with PageReader(seconds=0.0) as reader, pytest.raises(NotIndexed) as refusal:
        reader.read(fetched("<p>Boats" * 100_000))

    assert refusal.value.reason == "timeout"


def test_a_process_that_died_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    others = set(multiprocessing.active_children())
    with PageReader() as reader:
        assert reader.read(fetched("<p>Boats")).content == "Boats"
        [process] = set(multiprocessing.active_children()) - others
        process.kill()
        process.join()
        with pytest.raises(NotIndexed) as refusal:
            reader.read(fetched("<p>Boats"))
        assert refusal.value.reason == "not_text"
        assert "exit code -9" in caplog.text
        assert reader.read(fetched("<p>Boats")).content == "Boats"
