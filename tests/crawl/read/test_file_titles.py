"""Files without a title that a person wrote are called as their server calls them."""

from __future__ import annotations

import pytest

from app.crawl.fetch.values import Fetched
from app.crawl.read.file_titles import meaningful_title, name_of
from app.crawl.read.reader import read_page
from tests.crawl.read.samples import pdf

URL = "https://www.example.com/download.php?id=5"


@pytest.mark.parametrize(
    "title",
    [
        *("kap3_hafen.indd", "fees.docx", "fees.pub", r"C:\Users\x\fees.doc", "QuarkXPress(R): fees.qxp", "Document1"),
        *(
            "Folie 1",
            "Layout 1",
            "PowerPoint-Präsentation",
            "Print",
            "Microsoft Word - fees.doc",
            "Slide 1",
            "Untitled",
        ),
        *("Untitled-1", "untitled document", "Dokument2", "Présentation PowerPoint", "Presentación de PowerPoint"),
        *("PowerPoint プレゼンテーション", "/Users/x/fees.pages", "file:///C:/fees.htm", r"\\server\share\fees.xls"),
        *(
            "Adobe InDesign CS5: fees",
            "CorelDRAW - fees",
            "Fees 2024 final.PDF",
            "Sans titre",
            "無題",
            "Diapositiva 12",
        ),
    ],
)
def test_names_of_files_and_default_titles_are_not_titles(title: str) -> None:
    assert meaningful_title(title) == ""


@pytest.mark.parametrize(
    "title",
    [
        *("Harbor fees", "A guide to robots.txt", "About Node.js", "Slide 10 ways", "Document management", "Printing"),
        *(
            "Microsoft Word for beginners",
            "Untitled Goose Game",
            "C: the language",
            "Layout of the harbor",
            "Book of fees",
        ),
        *("Fees / Gebühren", "How to write .docx", "Version 1.2"),
    ],
)
def test_titles_that_people_write_stay(title: str) -> None:
    assert meaningful_title(title) == title


@pytest.mark.parametrize(
    ("disposition", "name"),
    [
        ('attachment; filename="Crane tariff.pdf"', "Crane tariff"),
        ("inline; filename=Crane tariff.pdf", "Crane tariff"),
        ("attachment; filename=\"x.pdf\"; filename*=UTF-8''Geb%C3%BChren%202024.pdf", "Gebühren 2024"),
        ("attachment; filename*=iso-8859-1''Geb%FChren.pdf", "Gebühren"),
        ("attachment; filename*=klingon''fees.pdf", "fees"),
        ('attachment; filename="Gebühren v1.2.pdf"', "Gebühren v1.2"),
        ('attachment; filename="a%20b.pdf"', "a b"),
        (r'attachment; filename="C:\Users\x\fees.pdf"', "fees"),
        ("inline", "download.php"),
        ('attachment; filename=""', "download.php"),
        ('attachment; filename=".pdf"', "download.php"),
        ('attachment; filename="Document1.pdf"', "download.php"),
        ('attachment; filename="download.php"', "download.php"),
    ],
)
def test_file_name_comes_from_content_disposition(disposition: str, name: str) -> None:
    assert name_of(URL, {"content-disposition": disposition}) == name


def test_pdf_without_a_title_has_the_name_that_its_server_sends() -> None:
    headers = {"content-type": "application/pdf", "content-disposition": 'attachment; filename="Crane tariff.pdf"'}

    assert read_page(Fetched(URL, 200, headers, pdf("Fees"))).title == "Crane tariff"
    assert read_page(Fetched(URL, 200, headers, pdf("Fees", title="Folie 1"))).title == "Crane tariff"
    assert read_page(Fetched(URL, 200, headers, pdf("Fees", title="Fees"))).title == "Fees"
    assert read_page(Fetched("https://example.com/crane.pdf", 200, {}, pdf("Fees"))).title == "crane.pdf"
