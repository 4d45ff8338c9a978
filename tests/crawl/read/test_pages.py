"""Every response becomes a page or a reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.crawl.fetch.values import Fetched, FieldRules, NotIndexed, Reason, Selectors
from app.crawl.read.files import MAX_PAGE_TITLE
from app.crawl.read.reader import read_page
from tests.crawl.read.office.builders import docx, epub, open_document, pptx, shape, w_p, xlsx
from tests.crawl.read.samples import fetched, pdf

WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PIECES = (
    "<html>",
    "<p>",
    "<a href=x>",
    "<main>",
    "<table><td>",
    "<!--",
    "<meta name=site-search:a content=b>",
    "\0",
    "%PDF-",
)


@pytest.mark.parametrize(
    ("body", "content_type", "title", "content"),
    [
        ("<title>Harbor</title><p>Boats", "text/html", "Harbor", "Boats"),
        ("<html><title>Harbor</title><p>Boats", "text/plain", "Harbor", "Boats"),
        ("<title>Harbor</title><p>Boats", "", "Harbor", "Boats"),
        (
            '<?xml version="1.0"?><html xmlns="x"><title>Harbor</title><p>Boats</p></html>',
            "application/xhtml+xml",
            "Harbor",
            "Boats",
        ),
        (
            '<?xml version="1.0"?><html xmlns="x"><title>Harbor</title><p>Boats</p></html>',
            "text/xml",
            "Harbor",
            "Boats",
        ),
        ("Boats leave\r\n  at ten.", "text/plain", "harbor.html", "Boats leave\n  at ten."),
        ("Boats", "", "harbor.html", "Boats"),
        ("# Harbor\n\nBoats **leave**", "text/markdown", "Harbor", "Harbor\n\nBoats leave"),
        ("Boats **leave**\n\n# Harbor", "text/markdown", "harbor.html", "Boats leave\n\nHarbor"),
        (pdf("Boats", title="Harbor"), "application/pdf", "Harbor", "Boats"),
        (pdf("Boats"), "application/octet-stream", "harbor.html", "Boats"),
        (docx(w_p("Boats"), {"dc:title": "Harbor"}), WORD, "Harbor", "Boats"),
        (docx(w_p("Boats")), "application/octet-stream", "harbor.html", "Boats"),
        (docx(w_p("Boats")), "text/html", "harbor.html", "Boats"),
        (xlsx({"Boats": ""}), WORD, "harbor.html", "Boats"),
        (epub({"c.xhtml": "<h1>Boats"}), "", "harbor.html", "Boats"),
        (open_document("text", "<text:h>Boats</text:h>"), "", "Boats", "Boats"),
        ("<p>Fähre".encode("latin-1"), "text/html; charset=latin1", "", "Fähre"),
    ],
)
def test_body_is_read_by_its_detected_media_type(
    body: str | bytes, content_type: str, title: str, content: str
) -> None:
    page = read_page(fetched(body, content_type))

    assert (page.title, page.content, page.skip_reason) == (title, content, None)


@pytest.mark.parametrize("content_type", ["text/markdown", "text/plain", "application/octet-stream", ""])
@pytest.mark.parametrize("name", ["harbor.md", "HARBOR.MD", "harbor.markdown"])
def test_markdown_is_recognized_by_its_extension(name: str, content_type: str) -> None:
    markdown = b"---\nlayout: post\n---\n# Harbor\n\nBoats **leave**"

    page = read_page(Fetched(f"https://www.example.com/{name}", 200, {"content-type": content_type}, markdown))

    assert (page.title, page.content) == ("Harbor", "Harbor\n\nBoats leave")


@pytest.mark.parametrize(
    ("front_matter", "title"),
    [
        ("---\ntitle: Harbor: the boats\nlayout: post\n---\n", "Harbor: the boats"),
        ('---\r\ntitle: "Harbor"\r\n---\r\n', "Harbor"),
        ("---\ntitle:\n---\n", "Boats"),
        ("---\nlayout: post\n---\ntitle: no\n\n", "notes.md"),
        ("---\ntitle: not closed\n\n", "notes.md"),
    ],
)
def test_title_of_markdown_is_the_one_in_its_front_matter(front_matter: str, title: str) -> None:
    body = f"{front_matter}# Boats\n\nThey leave.".encode()

    page = read_page(Fetched("https://www.example.com/notes.md", 200, {"content-type": "text/markdown"}, body))

    assert page.title == title


XHTML = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">
<!-- <p>Built by a help generator -->
<html xmlns="http://www.w3.org/1999/xhtml" lang="en"><head><title>Harbor</title><script src="a.js"/>
<script type="application/ld+json">//<![CDATA[
{"@type": "TechArticle", "author": {"name": "Ann &amp; Bob"}}
//]]></script><meta name="description" content="Boats&nbsp;leave"/></head>
<body><h1 id="way"><a name="x"/>The way</h1><?php if (a > b) ?><iframe src="frame.html"/><div class="nav"/><p>Boats
&amp; <![CDATA[<cranes>&nbsp;]]>&eacute; leave<br/>at <a href="ten.html">ten</a></p></body></html>"""
"""A page that rules of HTML would read as one long script."""


@pytest.mark.parametrize(
    ("content_type", "declaration"),
    [
        ("application/xhtml+xml", True), ("application/xhtml+xml; charset=utf-8", False), ("text/xml", False),
        ("application/xml", True), ("text/html", True), ("", True), ("application/octet-stream", True),
        ("text/plain", True),
    ],
)  # fmt: skip
def test_xhtml_is_parsed_as_xml(content_type: str, declaration: bool) -> None:
    body = XHTML if declaration else XHTML.partition("?>")[2]
    page = read_page(fetched(body, content_type))

    assert (page.title, page.lang, page.author, page.skip_reason) == ("Harbor", "en", None, None)
    assert page.content == "The way\n\nBoats & <cranes>&nbsp;é leave\nat ten"
    assert page.excerpt == "Boats leave"
    assert [link.rpartition("/")[2] for link in page.links] == ["frame.html", "ten.html"]
    assert [(section.anchor, section.title) for section in page.sections] == [("way", "The way")]


def test_json_ld_and_refresh_of_an_xml_page_are_read() -> None:
    head = (
        '<meta http-equiv="refresh" content="0; url=next.html"/>'
        '<script type="application/ld+json">{"author": "Ann &amp; Bob", "@type": "FAQPage"}</script>'
    )
    page = read_page(fetched(f"<html><head>{head}</head><body>Boats</body></html>", "application/xhtml+xml"))

    assert (page.author, page.fields["type"], len(page.links)) == ("Ann & Bob", "FAQPage", 1)


def test_prefixed_xhtml_is_read_like_a_page_without_prefixes() -> None:
    xhtml = (
        '<h:html xmlns:h="http://www.w3.org/1999/xhtml" xmlns:o="urn:office"><h:head><h:title>Harbor</h:title></h:head>'
        '<h:body><h:nav>Menu</h:nav><h:p>Boats</h:p><h:p>leave<o:p/></h:p><s:svg xmlns:s="http://www.w3.org/2000/svg">'
        "<s:title>Icon</s:title></s:svg></h:body></h:html>"
    )
    page = read_page(fetched(xhtml, "application/xml"))

    assert (page.title, page.content) == ("Harbor", "Boats\n\nleave")


@pytest.mark.parametrize(
    "body",
    [
        "<html><title>Harbor</title><p>Boats<br>leave</html>",
        "<html><title>Harbor</title><p>Boats &unknown; leave</p></html>",
        "<HTML><TITLE>Harbor</TITLE><P>Boats leave</P></HTML>",
        "<title>Harbor</title><p>Boats leave",
        "<html><title>Harbor</title><p>Boats leave<!--",
        "<html><title>Harbor</title><p>Boats leave<![CDATA[",
    ],
)
def test_xml_that_is_not_well_formed_is_read_by_the_rules_of_html(body: str) -> None:
    page = read_page(fetched(body, "application/xhtml+xml"))

    assert page.title == "Harbor"
    assert {"Boats", "leave"} <= set(page.content.split())


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0", "image/png"),
        (b"PK\x03\x04\0\0", "text/html"),
        (b"%PDF-1.7 broken", "application/pdf"),
        (b"PK\x03\x04\0\0", WORD),
        (b"PK\x03\x04\0\0", "application/octet-stream"),
        ("<p>Not found", WORD),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 as files with a password are", WORD),
        ("<?xml version='1.0'?><rss/>", "application/xml"),
        ("<?xml version='1.0'?><rss>&lt;html&gt;<html/></rss>", ""),
    ],
)
def test_unreadable_and_binary_bodies_are_rejected(body: str | bytes, content_type: str) -> None:
    with pytest.raises(NotIndexed) as refusal:
        read_page(fetched(body, content_type))

    assert refusal.value.reason == "not_text"


def test_file_without_text_has_the_empty_skip_reason() -> None:
    assert read_page(fetched(pdf(""), "application/pdf")).skip_reason == Reason.EMPTY
    assert read_page(fetched(docx(""), WORD)).skip_reason == Reason.EMPTY
    assert read_page(fetched(" \n", "text/plain")).skip_reason == Reason.EMPTY


def test_x_robots_tag_noindex_applies_to_pdfs() -> None:
    assert read_page(fetched(pdf("Boats"), "application/pdf", x_robots_tag="noindex")).skip_reason == Reason.NOINDEX


def test_files_other_than_html_get_fields_from_path_rules() -> None:
    rules = FieldRules(({"path": "/*", "set": {"product": "boats"}}, {"name": "a", "selector": "title"}))

    assert read_page(fetched(pdf("Boats"), "application/pdf"), rules=rules).fields == {
        "type": "pdf",
        "product": "boats",
    }
    assert read_page(fetched(b"Boats", "text/plain"), rules=rules).fields == {"product": "boats"}


def test_file_name_is_the_fallback_title() -> None:
    for url, title in (("https://e.com/a%20b/read%20me.txt?x=1", "read me.txt"), ("https://e.com/", "e.com")):
        assert read_page(fetched("Boats", "text/plain", url)).title == title


def test_xhtml_entity_bomb_is_not_expanded() -> None:
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    bomb = f'<?xml version="1.0"?><!DOCTYPE html [<!ENTITY e0 "boom">{entities}]><html><p>&e11;</p></html>'

    assert len(read_page(fetched(bomb, "application/xhtml+xml")).content) < len(bomb)


@given(
    st.one_of(st.binary(max_size=200), st.lists(st.sampled_from(PIECES) | st.text(max_size=5)).map("".join)),
    st.sampled_from(
        ["text/html", "text/plain", "application/pdf", "application/xml", "", "text/markdown; charset=koi8-r"]
    ),
    st.sampled_from([Selectors(), Selectors(content="p", title="a", remove="main")]),
)
def test_arbitrary_bodies_become_a_page_or_a_reason(body: str | bytes, content_type: str, selectors: Selectors) -> None:
    data = body.encode(errors="replace") if isinstance(body, str) else body
    try:
        page = read_page(fetched(data, content_type), selectors)
    except NotIndexed:
        return
    assert bool(page.content) or page.skip_reason is not None
    assert "\0" not in f"{page.title}{page.content}{page.fields}"
    f"{page.title}{page.content}".encode()


@pytest.mark.parametrize("stray", "\0\a\b\v")
@pytest.mark.parametrize("content_type", ["text/html", "text/plain", "text/markdown", "application/xhtml+xml"])
def test_stray_control_characters_are_removed(stray: str, content_type: str) -> None:
    assert read_page(fetched(f"Boats{stray} leave", content_type)).content == "Boats leave"


@pytest.mark.parametrize(
    "body",
    [
        pdf("Boats", "", "leave \a at ten", ""),
        pptx(shape("Boats"), "", shape("leave at ten"), ""),
        open_document(
            "presentation",
            "<draw:page><text:p>Boats</text:p></draw:page><draw:page/>"
            "<draw:page><text:p>leave at ten</text:p></draw:page><draw:page/>",
        ),
    ],
)
def test_pages_and_slides_become_sections_titled_by_their_first_line(body: bytes) -> None:
    page = read_page(fetched(body, ""))

    assert page.content.startswith("Boats\n\nleave")
    assert [section[:2] for section in page.sections] == [
        ("page=1", "Boats"),
        ("page=3", "leave at ten"),
    ]
    assert [section.start for section in page.sections] == [0, 7]


def test_slides_beyond_the_text_limit_are_not_sections() -> None:
    long = shape("harbor " * 70_000)
    page = read_page(fetched(pptx(long, long, long), ""))

    assert [section.anchor for section in page.sections] == ["page=1", "page=2"]
    assert page.content[page.sections[1].start :].startswith("harbor harbor")
    assert len(page.sections[1].title) <= MAX_PAGE_TITLE


def test_file_kind_author_and_date_are_returned() -> None:
    properties = {"dc:creator": "Ann", "dcterms:modified": "2024-05-01T09:30:00Z"}
    page = read_page(fetched(docx(w_p("Boats"), properties), ""))

    assert (page.kind, page.author, page.date, page.sections) == ("docx", "Ann", "2024-05-01T09:30:00+00:00", ())
    assert read_page(fetched(pdf("Boats"), "")).kind == "pdf"
    assert read_page(fetched("<p>Boats")).kind is None
    assert read_page(fetched("Boats", "text/plain")).kind is None
