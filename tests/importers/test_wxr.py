"""WordPress exports."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest

from app.bounded_process import Bound, BoundedProcess, BoundExceeded
from app.importers.records import MAX_RECORD_BYTES, BadLine, Read, Record, UnreadableFile
from app.importers.wxr import MAX_DEPTH, read_items, read_wxr
from schemas.validation.problems import Problem
from tests.importers.exports import WXR_END, WXR_HEAD, wxr, wxr_item


def read(text: bytes) -> list[Read]:
    return list(read_items(BytesIO(text)))


def documents(text: bytes) -> list[dict[str, Any]]:
    return [found.value for found in read(text) if isinstance(found, Record)]


def test_post_becomes_a_document() -> None:
    terms = (
        '<category domain="category" nicename="news"><![CDATA[News &amp; more]]></category>'
        '<category domain="post_tag" nicename="boat"><![CDATA[Boat]]></category>'
        '<category domain="post_tag" nicename="sea"><![CDATA[Sea]]></category>'
        '<category domain="nav_menu" nicename="top"><![CDATA[Top]]></category>'
        "<wp:postmeta><wp:meta_key>_edit_last</wp:meta_key><wp:meta_value>1</wp:meta_value></wp:postmeta>"
        "<wp:comment><wp:comment_content><![CDATA[First!]]></wp:comment_content></wp:comment>"
    )
    content = (
        "<!-- wp:paragraph -->\n<p>We open at <strong>nine</strong>.</p>\n<!-- /wp:paragraph -->"
        '[caption id="x" width="30"]<img src="a.jpg" alt="A boat"> The boat[/caption]<script>alert(1)</script>'
        '<p>See footnote [1] &ndash; [gallery ids="1,2"]</p>'
    )

    (found,) = read(wxr(wxr_item(7, "Opening &amp; closing", content, kind="post", more=terms)))

    assert isinstance(found, Record)
    assert found.line == WXR_HEAD.count("\n") + 1
    text = found.value.pop("content")
    assert found.value == {
        "id": "https://museum.example/7/",
        "url": "https://museum.example/7/",
        "title": "Opening & closing",
        "excerpt": None,
        "author": "Ann Annan",
        "date": "2024-05-01T08:00:00Z",
        "type": "post",
        "post_id": 7,
        "categories": ["News & more"],
        "tags": ["Boat", "Sea"],
    }
    assert text.split() == "We open at nine . The boat See footnote [1] –".replace(" .", ".").split()


def test_paragraphs_of_the_classic_editor_are_separated() -> None:
    (document,) = documents(wxr(wxr_item(1, content="One line\nand its end.\r\n\r\nThe next.")))

    assert document["content"] == "One line and its end.\n\nThe next."


def test_only_published_public_pages_and_posts_are_imported() -> None:
    items = [
        wxr_item(1), wxr_item(2, kind="post"), wxr_item(3, status="draft"), wxr_item(4, status="private"),
        wxr_item(5, password="secret"),
        wxr_item(6, kind="attachment", status="inherit"), wxr_item(7, kind="nav_menu_item"),
        wxr_item(8, status="trash"), wxr_item(9, status="future"), wxr_item(10, kind="revision"),
    ]  # fmt: skip

    assert [document["post_id"] for document in documents(wxr(*items))] == [1, 2]


@pytest.mark.parametrize(
    ("gmt", "other", "date"),
    [
        ("0000-00-00 00:00:00", "", "2024-05-01T10:00:00"),
        ("2024-05-01 08:00:00", "", "2024-05-01T08:00:00Z"),
    ],
)
def test_date_is_the_gmt_post_date_or_else_the_local_post_date(gmt: str, other: str, date: str) -> None:
    (document,) = documents(wxr(wxr_item(1, date_gmt=gmt)))

    assert document["date"] == date


def test_publication_date_is_used_without_a_post_date() -> None:
    item = wxr_item(1, date_gmt="").replace("2024-05-01 10:00:00", "")

    assert documents(wxr(item))[0]["date"] == "2024-05-01T10:00:00+02:00"
    for invalid in ("", "Wed, 01 May 2024 10:00:00 +99999999999999999999"):
        assert documents(wxr(item.replace("Wed, 01 May 2024 10:00:00 +0200", invalid)))[0]["date"] is None


def test_control_characters_invalid_in_xml_become_spaces() -> None:
    text = wxr(wxr_item(1, content="<p>a\x0bb\x00c</p>"), wxr_item(2))

    assert [document["content"] for document in documents(text)] == ["a b c", "Text."]


def test_truncated_export_is_read_up_to_the_truncation() -> None:
    text = wxr(wxr_item(1), wxr_item(2)).decode().partition("</item>")[0] + "</item>\n<item>\n<title>Cut"

    found = read(text.encode())

    assert isinstance(found[0], Record)
    assert isinstance(found[1], BadLine)
    assert found[1].problem == "is not well-formed XML: no element found; the rest was not read"
    assert found[1].line == text.count("\n") + 1


@pytest.mark.parametrize(
    "text",
    [
        b"", b"not XML", b"<html><p>Hello</html>", b"<html></html>", b'{"id": 1}',
        b'<rss version="2.0"><channel><item><title>Feed</title></item></channel></rss>',
    ],
)  # fmt: skip
def test_file_that_is_not_a_wordpress_export_is_rejected(text: bytes) -> None:
    with pytest.raises(UnreadableFile, match="file is not a WordPress export"):
        read(text)


BOMB = "<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY {b} '&{a};&{a};&{a};'>" for a, b in zip("abcdefg", "bcdefgh", strict=True)
)


@pytest.mark.parametrize(
    "declared",
    [f"<!DOCTYPE rss [{BOMB}]>", '<!DOCTYPE rss [<!ENTITY x SYSTEM "file:///etc/passwd">]>', '<!DOCTYPE rss SYSTEM "http://127.0.0.1/x">'],
)  # fmt: skip
def test_export_with_a_document_type_declaration_is_rejected(declared: str) -> None:
    text = wxr(wxr_item(1, content="]]>&h;&x;<![CDATA[")).decode().replace("<rss", declared + "<rss", 1)

    with pytest.raises(UnreadableFile, match="must not declare a document type"):
        read(text.encode())


def test_oversized_item_is_reported_and_its_neighbors_are_read() -> None:
    found = read(wxr(wxr_item(1), wxr_item(2, content="x" * (MAX_RECORD_BYTES + 1)), wxr_item(3)))

    assert [type(read) for read in found] == [Record, BadLine, Record]


def test_document_with_hostile_shortcodes_is_read() -> None:
    text = "[a a=[b" * 200_000 + '[a b="' * 1000 + "[a b='" * 1000 + "\n \n " * 100_000 + "[" * 100_000

    assert len(documents(wxr(wxr_item(1, content=text)))) == 1


def test_items_outside_the_channel_are_ignored() -> None:
    nested = f"<wp:x>{wxr_item(1)}</wp:x>"

    assert documents((WXR_HEAD + nested + "<a>" * 90 + "</a>" * 90 + WXR_END).encode()) == []


def test_export_read_in_a_subprocess_gives_the_same_records() -> None:
    text = wxr(*map(wxr_item, range(3))) + b"<"

    assert list(read_wxr(BytesIO(text))) == read(text)
    with pytest.raises(UnreadableFile, match="is not a WordPress export"):
        list(read_wxr(BytesIO(b"<rss></rss>")))


def test_ending_an_import_early_leaves_no_process() -> None:
    others = set(multiprocessing.active_children())
    reads = read_wxr(BytesIO(wxr(*map(wxr_item, range(300)))))

    next(reads)
    assert len(set(multiprocessing.active_children()) - others) == 1
    reads.close()

    assert set(multiprocessing.active_children()) <= others


def test_export_nested_too_deeply_is_rejected() -> None:
    with pytest.raises(UnreadableFile, match=f"has elements nested more than {MAX_DEPTH} levels deep") as rejection:
        read((WXR_HEAD + "<a>" * 100_000).encode())

    assert rejection.value.problem.code == "invalid_xml"


@pytest.mark.parametrize(
    ("bound", "code"), [(Bound.TIME, "timeout"), (Bound.MEMORY, "too_large"), (Bound.BROKEN, "invalid_xml")]
)
def test_import_stopped_by_a_resource_bound_reports_the_reason(
    bound: Bound, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def give_up(self: BoundedProcess, task: object, source: object) -> Iterator[Read]:
        yield BadLine(1, Problem("is bad", "invalid"))
        raise BoundExceeded(bound)

    monkeypatch.setattr(BoundedProcess, "stream", give_up)

    with pytest.raises(UnreadableFile) as rejection:
        list(read_wxr(BytesIO(b"")))

    assert (str(rejection.value.problem), rejection.value.problem.code) == (bound.value, code)
