"""Fetched responses for the tests of reading."""

from __future__ import annotations

from app.crawl.fetch.values import Fetched

URL = "https://docs.example.com/guide/harbor.html"


def fetched(
    body: str | bytes, content_type: str = "text/html; charset=utf-8", url: str = URL, **headers: str
) -> Fetched:
    """Build a fetched response. Underscores in header names stand for hyphens."""
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
    objects.append(f"<< {named}>>")
    body, offsets = b"%PDF-1.4\n", []
    for number, text in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n".encode()
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    tail = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R /Info {size - 1} 0 R >>\n"
    return body + f"{tail}startxref\n{len(body)}\n%%EOF".encode()
