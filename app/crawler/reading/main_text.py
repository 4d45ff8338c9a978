"""The main text of a page: without navigation, headers, footers, and other frames around it."""

from __future__ import annotations

from turbohtml import Document

from app.text_formats import node_to_text

CHROME = (
    "nav, [role=navigation], [role=banner], [role=contentinfo], [role=search], [role=menubar], [role=menu], "
    "[role=dialog], [aria-hidden=true], body > header, body > footer, dialog, form[role=search]"
)
MAIN = "main, [role=main]"


def main_text(document: Document) -> str:
    """The main text of a page, which is changed by it. Empty if nothing remains."""
    document.remove(CHROME)
    main = document.select_one(MAIN) or document.main_content() or document
    return node_to_text(main)
