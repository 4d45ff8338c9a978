"""Fetched responses for the tests of reading."""

from __future__ import annotations

from app.crawl.fetch.values import Fetched

URL = "https://docs.example.com/guide/harbor.html"


def fetched(
    body: str | bytes, content_type: str = "text/html; charset=utf-8", url: str = URL, **headers: str
) -> Fetched:
    """Build a fetched response. Underscores in header names become hyphens."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    data = body.encode() if isinstance(body, str) else body
    return Fetched(url=url, status=200, headers={"content-type": content_type} | named, body=data)


def pdf(*pages: str, title: str = "", **properties: str) -> bytes:
    """Build a PDF with one line of text per page and properties such as ``Author``."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET"
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>",
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        ]
    named = "".join(f"/{name} ({value}) " for name, value in {"Title": title, **properties}.items())
    return _file([*objects, f"<< {named}>>"])


FIRST_CODE = ord("A")
"""The code of the first glyph. In Courier, the letters that its codes draw fill the width of their boxes."""


def drawn_pdf(*runs: tuple[float, float, tuple[str, ...]]) -> bytes:
    """Build a PDF page from runs of glyphs as a browser draws them.

    Args:
        runs: The position of each run, and the text of each of its glyphs, from left to right. A ``*`` in it marks a
            glyph whose text the file declares beside it, such as a letter in one of its forms.
    """
    codes = {
        text: code for code, text in enumerate(dict.fromkeys(text for *_, texts in runs for text in texts), FIRST_CODE)
    }

    def show(text: str) -> str:
        actual = f"/Span <</ActualText <FEFF{text[1:].encode('utf-16-be').hex()}>>> BDC\n" if text[0] == "*" else ""
        return f"{actual}<{codes[text]:02x}> Tj{' EMC' if actual else ''}\n"

    # Browsers mirror the page, whose origin is at the top for them, and then each run of text.
    stream = "1 0 0 -1 0 792 cm\n" + "".join(
        f"BT /F1 20 Tf 1 0 0 -1 {x} {792 - y} Tm\n{''.join(map(show, texts))}ET\n" for x, y, texts in runs
    )
    unicode = "".join(f"<{code:02x}> <{text.lstrip('*').encode('utf-16-be').hex()}>\n" for text, code in codes.items())
    cmap = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /C def /CMapType 2 def\n"
        "1 begincodespacerange <00> <ff> endcodespacerange\n"
        f"{len(codes)} beginbfchar\n{unicode}endbfchar\nendcmap end end"
    )
    return _file(
        [
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
            "/Resources << /Font << /F1 5 0 R >> >> >>",
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
            f"<< /Type /Font /Subtype /Type1 /BaseFont /Courier /FirstChar {FIRST_CODE} "
            f"/LastChar {FIRST_CODE + len(codes) - 1} /Widths [{'600 ' * len(codes)}] /ToUnicode 6 0 R >>",
            f"<< /Length {len(cmap)} >>\nstream\n{cmap}\nendstream",
            "<< >>",
        ]
    )


def _file(objects: list[str]) -> bytes:
    """Build a PDF from its objects; the first is its catalog, and the last one contains its properties."""
    body, offsets = b"%PDF-1.4\n", []
    for number, text in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n".encode()
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    tail = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R /Info {size - 1} 0 R >>\n"
    return body + f"{tail}startxref\n{len(body)}\n%%EOF".encode()
