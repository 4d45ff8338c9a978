"""Text out of PDFs."""

from __future__ import annotations

import io

from pypdf import PdfReader

from app.crawler.reading.bounds import MAX_TEXT_BYTES, cut_line
from app.crawler.values import NotIndexed, Reason


def read_pdf(body: bytes) -> tuple[str, str]:
    """The title that a PDF names (empty if none) and its text, pages apart by blank lines.

    Raises:
        NotIndexed: The PDF is broken, or behind a password.
    """
    try:
        reader = PdfReader(io.BytesIO(body))
        texts: list[str] = []
        length = 0
        for page in reader.pages:
            texts.append(page.extract_text())
            length += len(texts[-1])
            if length > MAX_TEXT_BYTES:
                break
        title = reader.metadata.title if reader.metadata else None
    except Exception as error:
        raise NotIndexed(Reason.NOT_TEXT, "The PDF cannot be read.") from error
    return cut_line(title or ""), "\n\n".join(texts)
