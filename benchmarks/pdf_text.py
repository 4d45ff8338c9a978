"""How much text extractors read from PDFs, measured on manuals that exist both as PDF and as HTML.

    python -m benchmarks.pdf_text DIR

DIR is an unpacked `usr/share` of the Debian packages maint-guide, debian-reference-en, and doxygen-doc. For each
extractor and manual, the benchmark prints the share of the HTML pages' words that the PDF's text lacks (some belong to
the pages' navigation), the share of the text's words that no page contains (broken or joined words), and CPU seconds.
Extractors that are not installed are skipped.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from app.texts.formats import html_to_text
from benchmarks.extraction import words

MANUALS = {
    "doc/maint-guide/maint-guide.en.pdf": "doc/maint-guide/html/*.en.html",
    "debian-reference/debian-reference.en.pdf": "debian-reference/*.en.html",
    "doc/doxygen/doxygen_manual.pdf": "doc/doxygen/html/*.html",
}


def pdfium(file: Path) -> str:
    """Extract with PDFium, through pypdfium2."""
    with importlib.import_module("pypdfium2").PdfDocument(file) as document:
        return "\n".join(document[number].get_textpage().get_text_range() for number in range(len(document)))


def pypdf(file: Path) -> str:
    """Extract with pypdf."""
    return "\n".join(page.extract_text() for page in importlib.import_module("pypdf").PdfReader(file).pages)


def pdfminer(file: Path) -> str:
    """Extract with pdfminer.six."""
    text: str = importlib.import_module("pdfminer.high_level").extract_text(file)
    return text


EXTRACTORS: tuple[Callable[[Path], str], ...] = (pdfium, pypdf, pdfminer)


def main(folder: Path) -> None:
    print("| extractor | manual | text lost | unknown words | seconds |")
    print("|---|---|---|---|---|")
    for extractor in EXTRACTORS:
        for manual, pages in MANUALS.items():
            wanted = Counter(
                word for page in folder.glob(pages) for word in words(html_to_text(page.read_text(errors="replace")))
            )
            begun = time.process_time()
            try:
                text = extractor(folder / manual)
            except ImportError:
                print(f"{extractor.__name__} is not installed.")
                break
            seconds = time.process_time() - begun
            got = Counter(words(text))
            lost = (wanted - got).total() / wanted.total()
            unknown = sum(count for word, count in got.items() if word not in wanted) / got.total()
            name = Path(manual).name
            print(f"| {extractor.__name__} | {name} | {lost:.1%} | {unknown:.1%} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
