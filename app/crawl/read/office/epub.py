"""Text out of e-books (EPUB)."""

from __future__ import annotations

from app.crawl.fetch.values import NotIndexed, Reason
from app.crawl.read.bounds import MAX_TEXT_BYTES
from app.crawl.read.charsets import decode
from app.crawl.read.html.main_text import main_text
from app.crawl.read.office.archive import Archive, broken_file
from app.crawl.read.office.open_xml import resolve
from app.texts.formats import parse_html

MEDIA_TYPE = "application/epub+zip"

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_XHTML = "application/xhtml+xml"


def package_of(archive: Archive) -> str:
    """The name of the part that says what the book is and what is in it.

    Raises:
        NotIndexed: The book is broken.
    """
    for tag, value in archive.elements(_CONTAINER):
        if tag == "rootfile" and value.get("full-path") in archive:
            return str(value["full-path"])
    raise broken_file()


def read_epub(archive: Archive, package: str) -> str:
    """The text of a book's chapters in their order, each as a page's main text is found; without the list of them.

    Raises:
        NotIndexed: A part is broken, encrypted, or too large.
    """
    hrefs: dict[str, str] = {}
    order: list[str] = []
    for tag, value in archive.elements(package):
        if tag == "item" and value.get("media-type") == _XHTML and "nav" not in value.get("properties", "").split():
            hrefs[value.get("id", "")] = resolve(package, value.get("href", ""))
        elif tag == "itemref" and value.get("linear") != "no":
            order.append(value.get("idref", ""))
    chapters = dict.fromkeys(hrefs[id] for id in order if id in hrefs)
    encrypted = {
        resolve("", value.get("URI", "")) for tag, value in archive.elements(_ENCRYPTION) if tag == "CipherReference"
    }
    if not encrypted.isdisjoint(chapters):
        raise NotIndexed(Reason.NOT_TEXT, "The book is encrypted.")
    texts: list[str] = []
    room = MAX_TEXT_BYTES
    for chapter in chapters:
        if room <= 0:
            break
        text = main_text(parse_html(decode(archive.read(chapter), _XHTML)))
        room -= len(text)
        texts.append(text)
    return "\n\n".join(filter(None, texts))
