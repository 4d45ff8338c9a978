"""Not-found messages served with status 200 are detected; pages about such messages are not affected."""

from __future__ import annotations

import pytest

from app.crawl.read.html_pages import is_soft_404


@pytest.mark.parametrize(
    "title",
    [
        "404",
        "404 Not Found",
        "Page not found | Acme",
        "Acme - Error 404",
        "404: Page Not Found",
        "Oops! The page you were looking for doesn't exist.",
        "We can’t find that page",
        "Seite nicht gefunden – Acme",
        "Página no encontrada",
        "Page introuvable",
        "Страница не найдена",
        "ページが見つかりません",
        "找不到页面",
    ],
)
def test_not_found_message_in_title_or_first_line_is_a_soft_404(title: str) -> None:
    assert is_soft_404(title, "Try the search.")
    assert is_soft_404("Acme", f"{title.partition(' | ')[0].partition(' – ')[0]}\n\nTry the search.")


@pytest.mark.parametrize(
    ("title", "content"),
    [
        ("How to fix a 404 error", "Look at the log."),
        ("Route 404 through Norfolk", "The road."),
        ("Errors — module not found in Node.js", "Install it."),
        ("404 Not Found", "A long explanation. " * 200),
        ("Harbor", "Boats leave at ten."),
        ("", ""),
    ],
)
def test_page_about_errors_is_not_a_soft_404(title: str, content: str) -> None:
    assert not is_soft_404(title, content)
