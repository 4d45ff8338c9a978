"""The feeds of feedparser's tests, read by ours: `.ci/feeds.py FOLDER`, where FOLDER holds `feedparser` as its
repository has it.

Each file is a feed, with an expectation in a comment. Our reader gives the addresses of the entries' pages, so that is
what is asked of an expectation: those that it names must be found. Of every file is asked whether it is taken for a
feed, and whether the reader of sitemaps, which takes feeds too, finds the same in it."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from outside import judge, not_run

from app.crawl.fetch.addresses import normalize_url
from app.crawl.fetch.listings import read_feed, read_sitemap
from app.crawl.fetch.values import Fetched, NotIndexed

FOLDERS = ("wellformed", "illformed", "encoding", "entities")
HOST = "http://127.0.0.1:8097/tests/"
"""URL of the files in the expectations."""
HEADER = re.compile(r"(?m)^Header:\s+([^:\n]+):(.*)$")
EXPECTATION = re.compile(r"Description:\s*(.*?)\s*Expect:\s*(.*)\s*-->")
ENCODINGS = {
    b"\x00\x00\xfe\xff": "utf-32be", b"\xff\xfe\x00\x00": "utf-32le", b"\x00\x00\x00<": "utf-32be",
    b"<\x00\x00\x00": "utf-32le", b"\x00<\x00?": "utf-16be", b"<\x00?\x00": "utf-16le", b"\xfe\xff": "utf-16be",
    b"\xff\xfe": "utf-16le",
}  # fmt: skip


def text_of(body: bytes) -> str:
    """Decode a file, which has its expectation in a comment."""
    encoding = next((name for start, name in ENCODINGS.items() if body.startswith(start)), "utf-8")
    return body.decode(encoding, "ignore")


def expected_pages(expectation: str) -> list[str] | None:
    """Return the URLs of entries' pages in an expectation; ``None`` if it is about something else."""
    found: list[str] | None = None
    for node in ast.walk(ast.parse(expectation.strip(), mode="eval")):
        if isinstance(node, ast.Compare) and re.fullmatch(
            r"entries\[\d\]\['link'\]|entries\[\d\]\['links'\]\[\d\]\['href'\]", ast.unparse(node.left)
        ):
            found = (found or []) + [str(right.value) for right in node.comparators if isinstance(right, ast.Constant)]
        elif ast.unparse(node) == "not entries[0].has_key('link')":
            found = []
    return found


def read_as(kind: str, read: Callable[[Fetched], tuple[str, ...]], fetched: Fetched) -> tuple[str, ...] | str:
    """Return the URLs that a file lists, or why it cannot be read."""
    try:
        return read(fetched)
    except NotIndexed as error:
        return f"as a {kind}: {error}"


def differences(path: Path, name: str, headers: dict[str, str]) -> Iterator[str]:
    """Yield the differences from the expectation of a file that is sent with these headers."""
    body = path.read_bytes()
    match = EXPECTATION.search(text_of(body))
    if match is None:
        yield "the expectation could not be parsed"
        return
    fetched = Fetched(HOST + name, 200, headers, body)
    pages = read_as("feed", read_feed, fetched)
    listed = read_as("sitemap", lambda file: read_sitemap(file).pages, fetched)
    yield from (reason for reason in (pages, listed) if isinstance(reason, str))
    if pages != listed and isinstance(pages, tuple) and isinstance(listed, tuple):
        yield f"as a feed {pages}, as a sitemap {listed}"
    expected = expected_pages(match[2])
    if expected == [] and pages:
        yield f"{pages} instead of no pages"
    for url in expected or []:
        if normalize_url(url, HOST) not in pages:
            yield f"{pages} without {url}"


def outcome(path: Path, name: str) -> str | None:
    """Return the differences from a file's expectation, or ``None``.

    A file that specifies no headers is read once without headers, and once as servers send feeds.
    """
    headers = {key.strip().lower(): value.strip() for key, value in HEADER.findall(text_of(path.read_bytes()))}
    header_sets = [headers] if "content-type" in headers else [headers, {**headers, "content-type": "text/xml"}]
    return (
        "; ".join(dict.fromkeys(difference for sent in header_sets for difference in differences(path, name, sent)))
        or None
    )


def main(folder: Path) -> int:
    """Read all files. Returns the number of unexpected outcomes."""
    found = {str(path.relative_to(folder)): path for part in FOLDERS for path in sorted((folder / part).rglob("*.xml"))}
    others = not_run(folder, "test_*.py", ()) | not_run(folder, "*/", FOLDERS)
    return judge("feedparser", {name: outcome(path, name) for name, path in found.items()} | others)


if __name__ == "__main__":
    sys.exit(1 if main(Path(sys.argv[1]) / "feedparser/tests") else 0)
