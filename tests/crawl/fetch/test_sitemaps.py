"""Sitemaps of all formats are read, and hostile ones within bounds."""

from __future__ import annotations

import gzip
import tracemalloc
from contextlib import suppress
from datetime import datetime

import pytest

from app.crawl.fetch.listings import MAX_FILES, MAX_SITEMAP_BYTES, MAX_URLS, read_sitemap, walk_sitemaps
from app.crawl.fetch.values import Fetched, NotIndexed, Reason

SITE = "https://www.example.com"
URL = f"{SITE}/sitemap.xml"
JSON_FEED = (
    f'{{"version": "https://jsonfeed.org/version/1", "items": [{{"url": "{SITE}/a"}}, {{"url": "{SITE}/b?x=1&y=2"}}]}}'
)
NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def urlset(*urls: str, begin: str = '<?xml version="1.0" encoding="UTF-8"?>') -> str:
    return begin + f"<urlset {NAMESPACE}>" + "".join(f"<url><loc>{url}</loc></url>" for url in urls) + "</urlset>"


def index(*urls: str) -> str:
    return (
        f"<sitemapindex {NAMESPACE}>" + "".join(f"<sitemap><loc>{u}</loc></sitemap>" for u in urls) + "</sitemapindex>"
    )


def fetched(body: str | bytes) -> Fetched:
    return Fetched(URL, 200, {}, body.encode() if isinstance(body, str) else body)


def pages(body: str | bytes) -> tuple[str, ...]:
    return read_sitemap(fetched(body)).pages


class TestReading:
    @pytest.mark.parametrize(
        "body",
        [
            urlset(f"{SITE}/a", f"{SITE}/b?x=1&amp;y=2"),
            urlset(f"\n {SITE}/a\t", f"{SITE}/b?x=1&y=2"),
            urlset(f"{SITE}/a", f"<![CDATA[{SITE}/b?x=1&y=2]]>"),
            urlset(f"{SITE}/a?utm_source=s", f"{SITE}/b?x=1&#38;y=2", "javascript:x", "relative", "", f"{SITE}/a"),
            "\n\n" + urlset(f"{SITE}/a", f"{SITE}/b?x=1&amp;y=2"),
            urlset(f"{SITE}/a", f"{SITE}/b?x=1&amp;y=2").replace(NAMESPACE, ""),
            urlset(f"{SITE}/a", f"{SITE}/b?x=1&amp;y=2")[:-9],
            b"\xef\xbb\xbf" + urlset(f"{SITE}/a", f"{SITE}/b?x=1&amp;y=2").encode(),
            urlset(f"{SITE}/a", f"{SITE}/b?x=1&amp;y=2").replace("UTF-8", "UTF-16").encode("utf-16"),
            urlset(f"{SITE}/a", f"{SITE}/b?x=1&amp;y=2").replace("UTF-8", "UTF-16").encode("utf-16-be"),
            gzip.compress(urlset(f"{SITE}/a", f"{SITE}/b?x=1&amp;y=2").encode(), mtime=0),
            f"{SITE}/a\r\nno address\n\n{SITE}/b?x=1&y=2\n",
            gzip.compress(f"\ufeff{SITE}/a\n{SITE}/b?x=1&y=2".encode(), mtime=0),
            f'<rss version="2.0"><channel><item><link>{SITE}/a</link></item>'
            f"<item><link>{SITE}/b?x=1&amp;y=2</link></item></channel></rss>",
            JSON_FEED,
            gzip.compress(JSON_FEED.encode(), mtime=0),
        ],
    )
    def test_reading_a_sitemap_returns_its_page_urls(self, body: str | bytes) -> None:
        assert pages(body) == (f"{SITE}/a", f"{SITE}/b?x=1&y=2")

    def test_image_and_translation_entries_are_not_pages(self) -> None:
        picture = f"<image:image><image:loc>{SITE}/a.png</image:loc></image:image>"
        translation = f"<xhtml:link rel='alternate' href='{SITE}/de'/>"

        assert pages(urlset(f"{SITE}/a</loc>{picture}{translation}<loc>")) == (f"{SITE}/a",)

    @pytest.mark.parametrize(
        ("told", "moment"),
        [
            ("2024", "2024-01-01T00:00:00+00:00"),
            ("2024-05", "2024-05-01T00:00:00+00:00"),
            (" 2024-05-03\n", "2024-05-03T00:00:00+00:00"),
            ("2024-05-03T10:00+02:00", "2024-05-03T08:00:00+00:00"),
            ("2024-05-03T10:00:05.25Z", "2024-05-03T10:00:05+00:00"),
            ("2024-13-03", None),
            ("yesterday", None),
            ("٢٠٢٤", None),
            ("9" * 3_000, None),
            ("", None),
        ],
    )
    def test_lastmod_is_read_and_invalid_values_are_ignored(self, told: str, moment: str | None) -> None:
        for entry in ("<loc>{url}</loc><lastmod>{told}</lastmod>", "<lastmod>{told}</lastmod><loc>{url}</loc>"):
            urls = f"<url>{entry.format(url=f'{SITE}/a', told=told)}</url><url><loc>{SITE}/b</loc></url>"

            sitemap = read_sitemap(fetched(f"<urlset>{urls}</urlset>"))

            expected = {} if moment is None else {f"{SITE}/a": int(datetime.fromisoformat(moment).timestamp())}
            assert (sitemap.pages, sitemap.modified) == ((f"{SITE}/a", f"{SITE}/b"), expected)

    def test_sitemap_index_returns_sitemaps_and_no_pages(self) -> None:
        sitemap = read_sitemap(fetched(index(f"{SITE}/1.xml", f"{SITE}/2.xml.gz")))

        assert (sitemap.pages, sitemap.sitemaps) == ((), (f"{SITE}/1.xml", f"{SITE}/2.xml.gz"))

    @pytest.mark.parametrize(
        "body",
        [
            "",
            " ",
            "<html><body>Not found",
            "words",
            "{}",
            b"\x1f\x8bno gzip",
            gzip.compress(b"x" * 999, mtime=0)[:-9],
            b"\0\1\2",
        ],
    )
    def test_body_that_is_not_a_sitemap_is_a_bad_source(self, body: str | bytes) -> None:
        with pytest.raises(NotIndexed) as caught:
            pages(body)
        assert caught.value.reason == Reason.BAD_SOURCE

    @pytest.mark.parametrize("cut", range(60, 130))
    def test_ampersands_at_chunk_boundaries_are_read_correctly(self, cut: int) -> None:
        space = " " * (65_536 - cut)

        assert pages(f"<urlset>{space}<url><loc>{SITE}/?a=1&amp;b=2&c=3</loc></url></urlset>") == (
            f"{SITE}/?a=1&b=2&c=3",
        )


class TestHostileFiles:
    def test_sitemap_entities_are_not_expanded(self) -> None:
        entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10 if n else "lol"}">' for n in range(10))

        assert pages(urlset(f"{SITE}/&a9;", begin=f"<!DOCTYPE x [{entities}]>")) == (f"{SITE}/&a9;",)

    def test_entity_expansion_in_utf_16_sitemaps_is_bounded(self) -> None:
        entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10 if n else "lol"}">' for n in range(10))
        bomb = urlset(f"{SITE}/&a9;", f"{SITE}/b", begin=f"<!DOCTYPE x [{entities}]>").encode("utf-16")

        tracemalloc.start()
        assert all("lol" not in url or len(url) <= 2_048 for url in pages(bomb))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

        assert peak < 20_000_000

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
    def test_external_entities_do_not_open_files(self, encoding: str) -> None:
        entity = '<!DOCTYPE x [<!ENTITY x SYSTEM "file:///etc/passwd"><!ENTITY % y SYSTEM "file:///etc/hosts"> %y;]>'

        found = pages(urlset(f"{SITE}/&x;", f"{SITE}/b", begin=entity).encode(encoding))

        assert f"{SITE}/b" in found
        assert not any("root" in url for url in found)

    @pytest.mark.slow
    def test_gzip_bomb_is_read_within_bounded_memory(self) -> None:
        body = gzip.compress(f"<urlset><url><loc>{SITE}/a</loc></url>".encode() + b" " * (MAX_SITEMAP_BYTES * 3))

        tracemalloc.start()
        assert pages(body) == (f"{SITE}/a",)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

        assert peak < 5_000_000

    def test_urls_beyond_the_sitemap_protocol_limit_are_ignored(self) -> None:
        body = urlset(*(f"{SITE}/{number}" for number in range(MAX_URLS + 10)))

        assert len(pages(body)) == MAX_URLS

    @pytest.mark.parametrize("body", ["<a>" * 100_000, "<urlset>" + "<x/>" * 100_000, "<urlset " + "x='&' " * 50_000])
    def test_deeply_nested_and_very_wide_xml_uses_bounded_memory(self, body: str) -> None:
        tracemalloc.start()
        with suppress(NotIndexed):
            assert pages(body) == ()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

        assert peak < 40_000_000


class Files:
    """A fake fetch that serves a few files."""

    def __init__(self, **files: str) -> None:
        self.files = {f"{SITE}/{name}.xml": body for name, body in files.items()}
        self.urls: list[str] = []

    def __call__(self, url: str, *, any_type: bool = False, max_bytes: int = 0, truncate: bool = False) -> Fetched:
        assert any_type
        assert max_bytes == MAX_SITEMAP_BYTES
        self.urls.append(url)
        if url not in self.files:
            raise NotIndexed("http_404", "No.")
        return Fetched(url, 200, {}, self.files[url].encode())


def walk(files: Files, *names: str) -> tuple[list[str], dict[str, str]]:
    failed: dict[str, str] = {}
    urls = [f"{SITE}/{name}.xml" for name in names]
    found = walk_sitemaps(files, urls, lambda u, e: failed.update({u: e.reason}), read_sitemap)
    return [page.url.removeprefix(SITE) for page in found], failed


class TestWalking:
    def test_sitemap_indexes_are_followed_and_failures_reported(self) -> None:
        files = Files(
            index=index(f"{SITE}/a.xml", f"{SITE}/gone.xml", f"{SITE}/bad.xml"),
            a=urlset(f"{SITE}/1"),
            b=urlset(f"{SITE}/2"),
            bad="<html>",
        )

        found, failed = walk(files, "index", "b")

        assert sorted(found) == ["/1", "/2"]
        assert failed == {f"{SITE}/gone.xml": "http_404", f"{SITE}/bad.xml": "bad_source"}

    def test_sitemaps_that_reference_each_other_are_fetched_once(self) -> None:
        files = Files(a=index(f"{SITE}/a.xml", f"{SITE}/b.xml"), b=index(f"{SITE}/a.xml", f"{SITE}/c.xml"), c=urlset())

        walk(files, "a", "b")

        assert sorted(files.urls) == [f"{SITE}/a.xml", f"{SITE}/b.xml", f"{SITE}/c.xml"]

    @pytest.mark.slow
    def test_endless_sitemap_indexes_stop_at_the_file_limit(self) -> None:
        class Endless(Files):
            def __call__(
                self, url: str, *, any_type: bool = False, max_bytes: int = 0, truncate: bool = False
            ) -> Fetched:
                self.urls.append(url)
                return fetched(index(*(f"{url}/{number}" for number in range(40))))

        files = Endless()
        walk(files, "a")
        assert len(files.urls) == MAX_FILES

    def test_deeply_nested_sitemap_indexes_stop_at_the_depth_limit(self) -> None:
        files = Files(**{f"d{number}": index(f"{SITE}/d{number + 1}.xml") for number in range(10)})

        walk(files, "d0")

        assert len(files.urls) == 4
