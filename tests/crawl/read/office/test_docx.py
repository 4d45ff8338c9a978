"""Reads the text of Word documents in reading order."""

from __future__ import annotations

import pytest

from app.crawl.read.files import ReadFile
from app.crawl.read.office.office_files import read_office_file
from tests.crawl.read.office.builders import archive, docx, w_p

STYLES = (
    '<w:style w:styleId="Titel"><w:name w:val="Title"/></w:style>'
    '<w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>'
    '<w:style w:styleId="Own"><w:name w:val="Our own"/><w:basedOn w:val="berschrift1"/></w:style>'
    '<w:style w:styleId="Outlined"><w:name w:val="Part"/><w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:style>'
    '<w:style w:styleId="Body"><w:name w:val="Body"/><w:pPr><w:outlineLvl w:val="9"/></w:pPr></w:style>'
    '<w:style w:styleId="Circle"><w:name w:val="Circle"/><w:basedOn w:val="Circle"/></w:style>'
)


def read(body: str, footnotes: str = "") -> ReadFile:
    return read_office_file(docx(body, styles=STYLES, footnotes=footnotes))


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def row(*cells: str) -> str:
    return f"<w:tr>{''.join(f'<w:tc>{cell}</w:tc>' for cell in cells)}</w:tr>"


def test_docx_paragraphs_are_lines_and_headings_are_separate_blocks() -> None:
    body = w_p("Harbor", "berschrift1") + w_p("Boats leave.") + w_p("At ten.") + w_p("Way", "Own") + w_p("By tram.")

    assert read(body).pages == ["Harbor\n\nBoats leave.\nAt ten.\n\nWay\n\nBy tram."]


@pytest.mark.parametrize(
    ("body", "title"),
    [
        (w_p("Boats") + w_p("Harbor", "berschrift1") + w_p("Way", "berschrift1"), "Harbor"),
        (w_p("Way", "berschrift1") + w_p("Harbor", "Titel"), "Harbor"),
        (w_p("", "Titel") + w_p("Harbor", "Own"), "Harbor"),
        (w_p("Harbor", "Outlined"), "Harbor"),
        (w_p("Boats", "Body") + w_p("Boats", "Circle") + w_p("Boats", "unknown"), ""),
    ],
)
def test_docx_title_falls_back_to_title_style_or_first_heading(body: str, title: str) -> None:
    assert read(body).title == title


def test_runs_within_a_word_are_joined() -> None:
    assert read(f"<w:p>{run('Bo', '<w:b/>')}{run('ats ')}{run('leave')}</w:p>").pages == ["Boats leave"]


def test_docx_breaks_and_tabs_are_normalized() -> None:
    body = "<w:p><w:r><w:t>a</w:t><w:br/><w:t>b</w:t><w:tab/><w:t>c</w:t><w:noBreakHyphen/><w:t>d</w:t></w:r></w:p>"

    assert read(body).pages == ["a\nb c-d"]


def test_docx_tables_are_read_row_by_row() -> None:
    table = f"<w:tbl>{row(w_p('a'), w_p('b'))}{row(w_p('c') + w_p('d'), w_p(''), w_p('e'))}</w:tbl>"

    assert read(w_p("before") + table + w_p("after")).pages == ["before\n\na\tb\nc\nd\te\n\nafter"]


def test_docx_footnotes_come_after_the_text() -> None:
    assert read(w_p("Boats"), footnotes=f"<w:footnote>{w_p('Note')}</w:footnote>").pages == ["Boats\n\nNote"]


@pytest.mark.parametrize(
    "unread",
    [
        f"<w:del>{run('x')}</w:del>",
        f"<w:moveFrom>{run('x')}</w:moveFrom>",
        run("x", "<w:vanish/>"),
        "<w:r><w:instrText>PAGE</w:instrText></w:r>",
        '<mc:AlternateContent xmlns:mc="urn:mc"><mc:Choice/><mc:Fallback>'
        + run("x")
        + "</mc:Fallback></mc:AlternateContent>",
    ],
)
def test_docx_deleted_hidden_and_fallback_text_is_not_read(unread: str) -> None:
    assert read(f"<w:p>{run('a ')}{unread}{run('b')}</w:p>").pages == ["a b"]


def test_docx_text_with_hidden_turned_off_is_read() -> None:
    assert read(f"""<w:p>{run("a", '<w:vanish w:val="0"/>')}</w:p>""").pages == ["a"]


def test_docx_text_box_lines_are_separate() -> None:
    box = f"<w:r><w:pict><w:txbxContent>{w_p('in')}</w:txbxContent></w:pict></w:r>"

    assert read(f"<w:p>{run('out')}{box}</w:p>{w_p('after')}").pages == ["out\nin\nafter"]


def test_strict_open_xml_variant_is_read() -> None:
    purl = "http://purl.oclc.org/ooxml"
    target = f'<Relationship Id="a" Type="{purl}/officeDocument/relationships/officeDocument" Target="/doc.xml"/>'
    document = w_p("Boats").replace("<w:p>", f'<w:p xmlns:w="{purl}/wordprocessingml/main">')
    parts = {"_rels/.rels": f"<Relationships>{target}</Relationships>", "doc.xml": f"<document>{document}</document>"}

    assert read_office_file(archive(parts)).pages == ["Boats"]
