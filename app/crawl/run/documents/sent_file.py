"""The document that a file becomes that was sent rather than fetched."""

from __future__ import annotations

from app.crawl.fetch.values import MAX_PAGE_BYTES, Fetched, NotIndexed, Reason
from app.crawl.read.reader import PageReader
from app.crawl.run.documents.page_documents import make_document
from schemas.validation.documents import ValidDocument


def read_sent_file(body: bytes, content_type: str, address: str) -> ValidDocument:
    """Read a file as if it had been fetched from an address: the document is the same.

    Args:
        content_type: As whoever sent it says; what does not say enough is found out.
        address: Normalized.

    Raises:
        NotIndexed: There would be no document.
    """
    if len(body) > MAX_PAGE_BYTES:
        raise NotIndexed(Reason.TOO_LARGE, f"The file has more than {MAX_PAGE_BYTES // 1_048_576} MiB.")
    with PageReader() as reader:
        page = reader.read(Fetched(address, 200, {"content-type": content_type}, body))
    if page.left_out is Reason.EMPTY:
        raise NotIndexed(page.left_out, "There is no text in the file.")
    if page.left_out is not None:
        raise NotIndexed(page.left_out, "The file asks not to be indexed, or says that nothing was found.")
    return make_document(page, address, page.title)
