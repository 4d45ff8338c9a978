"""Builds small office files and e-books as common programs write them."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
P = (
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
)
S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
R = f'xmlns:r="{OFFICE}"'
DC = 'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/"'
ODF = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{long}:1.0"'
    for name, long in {
        "office": "office",
        "text": "text",
        "table": "table",
        "draw": "drawing",
        "presentation": "presentation",
        "meta": "meta",
    }.items()
)


def archive(parts: Mapping[str, str | bytes]) -> bytes:
    """Build a ZIP archive of these parts."""
    file = BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as packed:
        for name, part in parts.items():
            packed.writestr(name, part)
    return file.getvalue()


def relationships(named: Mapping[str, tuple[str, str]]) -> str:
    """Build a relationships part from IDs mapped to type and target."""
    listed = "".join(
        f'<Relationship Id="{id}" Type="{OFFICE}/{kind}" Target="{target}"/>' for id, (kind, target) in named.items()
    )
    return f'<?xml version="1.0"?><Relationships xmlns="{PACKAGE}/relationships">{listed}</Relationships>'


def core(properties: Mapping[str, str]) -> str:
    """Build the core properties of a Microsoft file from names, such as ``dc:title``, mapped to texts."""
    listed = "".join(f"<{name}>{escape(text)}</{name}>" for name, text in properties.items())
    return f'<cp:coreProperties xmlns:cp="{PACKAGE}/metadata/core-properties" {DC}>{listed}</cp:coreProperties>'


def open_xml(main: str, parts: Mapping[str, str | bytes], properties: Mapping[str, str] | None = None) -> bytes:
    """Build an Open XML file with this main part."""
    named = {"rId1": ("officeDocument", main), "rId2": ("metadata/core-properties", "docProps/core.xml")}
    return archive(
        {
            "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"/>',
            "_rels/.rels": relationships(named),
            "docProps/core.xml": core(properties or {}),
            **parts,
        }
    )


def docx(
    body: str, properties: Mapping[str, str] | None = None, *, styles: str = "", footnotes: str = "", head: str = ""
) -> bytes:
    """Build a Word document from the XML of its body: ``<w:p>…``."""
    named = {"rId1": ("styles", "styles.xml"), "rId2": ("footnotes", "/word/footnotes.xml")}
    return open_xml(
        "word/document.xml",
        {
            "word/_rels/document.xml.rels": relationships(named),
            "word/document.xml": f"{head}<w:document {W}><w:body>{body}</w:body></w:document>",
            "word/styles.xml": f"<w:styles {W}>{styles}</w:styles>",
            "word/footnotes.xml": f"<w:footnotes {W}>{footnotes}</w:footnotes>",
        },
        properties,
    )


def w_p(text: str, style: str = "") -> str:
    """Build a paragraph of a Word document."""
    named = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{named}<w:r><w:t>{escape(text)}</w:t></w:r></w:p>"


def shape(*paragraphs: str, kind: str = "") -> str:
    """Build a slide's shape with these paragraphs; ``kind`` is its placeholder type, such as ``title``."""
    placeholder = f'<p:nvPr><p:ph type="{kind}"/></p:nvPr>' if kind else ""
    text = "".join(f"<a:p><a:r><a:t>{escape(each)}</a:t></a:r></a:p>" for each in paragraphs)
    return f"<p:sp><p:nvSpPr>{placeholder}</p:nvSpPr><p:txBody>{text}</p:txBody></p:sp>"


def pptx(*slides: str, properties: Mapping[str, str] | None = None, hidden: int | None = None) -> bytes:
    """Build a presentation whose slides are numbered backwards in the archive."""
    count = len(slides)
    ids = "".join(f'<p:sldId id="{256 + place}" r:id="r{place}"/>' for place in range(count))
    parts: dict[str, str] = {
        "ppt/presentation.xml": f"<p:presentation {P} {R}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relationships(
            {f"r{place}": ("slide", f"slides/slide{count - place}.xml") for place in range(count)}
        ),
    }
    for place, shapes in enumerate(slides):
        shown = ' show="0"' if place == hidden else ""
        parts[f"ppt/slides/slide{count - place}.xml"] = (
            f"<p:sld {P}{shown}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>"
        )
    return open_xml("ppt/presentation.xml", parts, properties)


def xlsx(
    sheets: Mapping[str, str],
    *,
    strings: str = "",
    styles: str = "",
    workbook: str = "",
    state: str = "visible",
    properties: Mapping[str, str] | None = None,
) -> bytes:
    """Build a workbook from sheet names mapped to rows. ``state`` is the visibility of the last sheet."""
    last = len(sheets) - 1
    listed = "".join(
        f'<sheet name="{escape(name)}" sheetId="{place}" r:id="r{place}"'
        + (f' state="{state}"' if place == last else "")
        + "/>"
        for place, name in enumerate(sheets)
    )
    named = {f"r{place}": ("worksheet", f"worksheets/sheet{place}.xml") for place in range(len(sheets))}
    parts = {
        "xl/workbook.xml": f"<workbook {S} {R}>{workbook}<sheets>{listed}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": relationships(
            named | {"strings": ("sharedStrings", "sharedStrings.xml"), "styles": ("styles", "styles.xml")}
        ),
        "xl/sharedStrings.xml": f"<sst {S}>{strings}</sst>",
        "xl/styles.xml": f"<styleSheet {S}>{styles}</styleSheet>",
    }
    for place, rows in enumerate(sheets.values()):
        parts[f"xl/worksheets/sheet{place}.xml"] = f"<worksheet {S}><sheetData>{rows}</sheetData></worksheet>"
    return open_xml("xl/workbook.xml", parts, properties)


def open_document(kind: str, body: str, meta: str = "") -> bytes:
    """Build an OpenDocument file of kind ``text``, ``presentation``, or ``spreadsheet`` with this body."""
    content = f"<office:{kind}>{body}</office:{kind}>"
    return archive(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": (
                f"<office:document-content {ODF}><office:body>{content}</office:body></office:document-content>"
            ),
            "meta.xml": f"<office:document-meta {ODF} {DC}><office:meta>{meta}</office:meta></office:document-meta>",
        }
    )


def epub(chapters: Mapping[str, str], metadata: str = "", *, spine: str | None = None, encrypted: str = "") -> bytes:
    """Build an e-book from chapter file names mapped to HTML, with a table of contents."""
    items = "".join(
        f'<item id="c{place}" href="{name}" media-type="application/xhtml+xml"/>' for place, name in enumerate(chapters)
    )
    order = "".join(f'<itemref idref="c{place}"/>' for place in range(len(chapters))) if spine is None else spine
    parts: dict[str, str] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": (
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="book/package.opf"/></rootfiles></container>'
        ),
        "book/package.opf": (
            f'<package xmlns="http://www.idpf.org/2007/opf" {DC}><metadata>{metadata}</metadata><manifest>{items}'
            '<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/></manifest>'
            f'<spine><itemref idref="nav"/>{order}</spine></package>'
        ),
        "book/nav.xhtml": "<html><body><nav>Contents</nav>List</body></html>",
        **{f"book/{name.replace('%20', ' ')}": html for name, html in chapters.items()},
    }
    if encrypted:
        parts["META-INF/encryption.xml"] = f'<encryption><CipherReference URI="{encrypted}"/></encryption>'
    return archive(parts)
