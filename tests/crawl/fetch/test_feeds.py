"""A feed lists the URLs of its entries' pages."""

from __future__ import annotations

import orjson
import pytest

from app.crawl.fetch.listings import fetch_feed, read_feed
from app.crawl.fetch.values import Fetched, NotIndexed, Reason

URL = "https://www.example.com/blog/feed.xml"
RSS = """<?xml version="1.0" encoding="utf-8"?><rss version="2.0"><channel><title>Blog</title>
<link>https://www.example.com/</link>
<item><title>One</title><link>https://www.example.com/one?utm_source=rss</link></item>
<item><title>Two</title><link>/two#part</link></item>
<item><title>None</title></item>
<item><title>Empty</title><link></link></item>
<item><title>Guid</title><guid>https://www.example.com/three</guid></item>
<item><title>Script</title><link>javascript:alert(1)</link></item>
<item><title>Again</title><link>https://www.example.com/one</link></item>
</channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>Blog</title><link href="https://www.example.com/"/>
<entry><title>One</title><link rel="edit" href="https://www.example.com/edit/1"/>
<link rel="alternate" type="text/html" href="https://www.example.com/one"/></entry>
<entry><title>Two</title><link href="two"/></entry></feed>"""
RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
<channel/><item><title>One</title><link>https://www.example.com/one</link></item></rdf:RDF>"""

JSON_ITEMS = [
    {"id": "1", "url": "https://www.example.com/one?utm_source=json", "external_url": "https://other.example/"},
    {"id": 2, "url": "two"},
    {"id": "https://www.example.com/three", "url": ""},
    {"id": "four", "external_url": "https://other.example/"},
    {"id": "5", "url": "javascript:alert(1)"},
    {"id": "6", "url": ["https://www.example.com/six"]},
    {"id": "7", "url": "https://www.example.com/one"},
    "https://www.example.com/eight",
]


def json_feed(version: str = "https://jsonfeed.org/version/1.1", items: object = JSON_ITEMS) -> bytes:
    return orjson.dumps({"version": version, "title": "Blog", "items": items})


def read(text: str | bytes, content_type: str = "application/xml") -> tuple[str, ...]:
    body = text.encode() if isinstance(text, str) else text
    return read_feed(Fetched(URL, 200, {"content-type": content_type}, body))


def pages(*names: str) -> tuple[str, ...]:
    return tuple(f"https://www.example.com/{name}" for name in names)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (RSS, pages("one", "two", "three")),
        (ATOM, pages("one", "blog/two")),
        (RDF, pages("one")),
        (RSS.replace("Blog", "Blog & more &nbsp; <b>"), pages("one", "two", "three")),
        (RSS[: RSS.index("<item><title>None")], pages("one", "two")),
        (json_feed(), pages("one", "blog/two", "three")),
        (json_feed("https://jsonfeed.org/version/1"), pages("one", "blog/two", "three")),
        (b"\xef\xbb\xbf\n" + json_feed(items=[]), ()),
        (RSS.replace("utf-8", "iso-8859-1").replace("One", "Öne").encode("latin-1"), pages("one", "two", "three")),
    ],
    ids=["rss", "atom", "rdf", "broken", "cut", "json 1.1", "json 1", "json empty", "latin"],
)
def test_reading_a_feed_returns_the_urls_of_its_entries(text: str | bytes, found: tuple[str, ...]) -> None:
    assert read(text) == found


@pytest.mark.parametrize("encoding", ["utf-16-be", "utf-16-le", "utf-16", "utf-32-be"])
@pytest.mark.parametrize(
    "content_type", ["text/xml", "text/html", "application/xml; charset=utf-16", "text/xml;charset=utf-8"]
)
def test_utf_16_and_utf_32_feeds_are_read_regardless_of_the_content_type(encoding: str, content_type: str) -> None:
    text = RSS.replace("utf-8", "utf-16" if encoding.startswith("utf-16") else "utf-32")

    assert read(text.encode(encoding), content_type) == pages("one", "two", "three")


def test_entry_with_several_alternate_links_uses_the_first() -> None:
    links = '<link href="/one"/><link rel="alternate" type="text/html" hreflang="de" href="/eins"/>'

    assert read(f'<feed xmlns="http://www.w3.org/2005/Atom"><entry>{links}</entry></feed>') == pages("one")


@pytest.mark.parametrize(
    "text",
    [
        *("", "<html><body>Not found</body></html>", "no feed", "{}", "/etc/passwd", "<urlset/>", '{"items": []}'),
        *(json_feed("2.0"), json_feed(items={}), json_feed()[:-3], b'{"a":' * 5_000),
    ],
)
def test_body_that_is_not_a_feed_is_a_bad_source(text: str | bytes) -> None:
    with pytest.raises(NotIndexed) as caught:
        read(text)
    assert caught.value.reason == Reason.BAD_SOURCE


def test_feed_entities_are_not_expanded_and_external_files_not_opened() -> None:
    entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10 if n else "lol"}">' for n in range(10))
    bomb = f"<!DOCTYPE rss [{entities}]>" + RSS.partition("?>")[2].replace("One", "&a9;")
    outside = '<!DOCTYPE rss [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + RSS.partition("?>")[2].replace(
        "/one?", "/&x;one?"
    )

    assert pages("two")[0] in read(bomb)
    assert not any("root" in url for url in read(outside))


@pytest.mark.slow
def test_feed_is_read_up_to_ten_thousand_entries() -> None:
    items = "".join(f"<item><link>/{number}</link></item>" for number in range(10_050))

    assert len(read(f'<rss version="2.0"><channel>{items}</channel></rss>')) == 10_000
    assert len(read(json_feed(items=[{"url": f"/{number}"} for number in range(10_050)]))) == 10_000


def test_feed_is_fetched_regardless_of_its_media_type() -> None:
    def fetch(url: str, *, any_type: bool = False, max_bytes: int = 0, truncate: bool = False) -> Fetched:
        assert any_type
        return Fetched(url, 200, {"content-type": "application/rss+xml"}, RSS.encode())

    assert fetch_feed(fetch, URL, read_feed) == pages("one", "two", "three")
