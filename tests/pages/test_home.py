"""The landing page: its figures and pictures show what the product does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from flask import Flask

from app.pages.sources.reports import EXPLANATIONS
from tests.conftest import close_app, make_app, make_settings
from tests.pages.people import Person

PROJECT = Path(__file__).resolve().parents[2]
EVIDENCE = {
    "< 6 ms": ("docs/benchmarks.md", "medians on short documents are 4.2 to 5.8 ms"),
    "38": ("README.md", "38 languages, and dark mode"),
    "≤ 20 KB": ("docs/search-box.md", "at most 20 KB compressed"),
    "0": ("docs/analytics.md", "sets no cookie and stores no visitor's IP address"),
}
"""Maps each figure to the document and the words that prove it. Tests prove the words about languages and size."""


def test_figures_are_documented(app: Flask) -> None:
    figures = Person(app).go("/").one("section", aria_label="Figures").all("dd")

    assert [figure.text for figure in figures] == list(EVIDENCE)
    for document, words in EVIDENCE.values():
        assert words in " ".join((PROJECT / document).read_text(encoding="utf-8").split()), document


def test_pictures_are_described_and_contain_no_bitmaps(app: Flask) -> None:
    page = Person(app).go("/")
    pictures = page.all("figure", role="img")

    assert len(pictures) == 4
    assert all(len(picture.attributes["aria-label"]) > 50 for picture in pictures)
    assert not [part for picture in pictures for tag in ("a", "button", "input") for part in picture.all(tag)]
    assert page.all("img") == []


def test_pictured_rule_reads_as_the_product_writes_it(app: Flask) -> None:
    sentence = (
        "When a search contains “ticket”, show “Tickets and prices” first and show the notice “Open until eight in "
        "December”."
    )

    assert Person(app).go("/").one("p", class_="shot-sentence").text == sentence


def test_pictured_reasons_are_reasons_of_the_crawler(app: Flask) -> None:
    lines = Person(app).go("/").one("div", class_="shot-lines").all("p")
    reasons = [re.sub(", linked from .*", "", line.all("span")[0].text) for line in lines]
    explained = {explanation.short for explanation in EXPLANATIONS.values()}

    assert [reason for reason in reasons if reason not in explained and f"with {reason}" not in explained] == []


def test_home_page_contains_the_terms_that_buyers_search_for(app: Flask) -> None:
    text = Person(app).go("/").text.lower()

    for words in ("site search", "autocomplete", "semantic search", "pricing", "privacy (gdpr)", "dark mode"):
        assert words in text


@pytest.mark.parametrize("is_open", [True, False])
def test_closed_registration_leaves_only_the_login(tmp_path: Path, is_open: bool) -> None:
    app = make_app(make_settings(tmp_path, registration=is_open))
    links = [link.attributes["href"] for link in Person(app).go("/").one("main").all("a")]

    assert ("/register" in links) == is_open
    assert "/login" in links
    close_app(app)
