"""Error messages served with status 200 are detected; pages about such messages are not affected."""

from __future__ import annotations

import pytest

from app.crawl.fetch.values import Reason
from app.crawl.read.error_pages import error_of


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
        *(
            "Sidan hittades inte",
            "Sayfa bulunamadı",
            "Stránka nenalezena",
            "페이지를 찾을 수 없습니다",
            "Siden blev ikke fundet",
        ),
        *(
            "Сторінку не знайдено",
            "الصفحة غير موجودة",
            "Siden ble ikke funnet",
            "Sivua ei löydy",
            "Az oldal nem található",
        ),
        *(
            "הדף לא נמצא",
            "Η σελίδα δεν βρέθηκε",
            "Pagina nu a fost găsită",
            "Không tìm thấy trang",
            "Halaman tidak ditemukan",
        ),
        *("Stránka nebola nájdená", "Страницата не е намерена", "ไม่พบหน้า", "صفحه یافت نشد", "Stranica nije pronađena"),
        *("404 – Sidan hittades inte | Acme", "Fel 404: Sidan saknas", "Sayfa bulunamadı (404)"),
    ],
)
def test_not_found_message_in_title_or_first_line_is_a_soft_404(title: str) -> None:
    assert error_of(title, "Try the search.") is Reason.SOFT_404
    assert error_of("Acme", f"{title.partition(' | ')[0].partition(' – ')[0]}\n\nTry the search.") is Reason.SOFT_404


@pytest.mark.parametrize(
    "title",
    [
        *("Internal Server Error", "500 - Internal Server Error", "Under maintenance", "Acme | Site under maintenance"),
        *("503 Service Unavailable", "Bad Gateway", "Error establishing a database connection", "We’ll be back soon!"),
        *(
            "Interner Serverfehler",
            "Site en maintenance",
            "Página en mantenimiento",
            "メンテナンス中",
            "Wartungsarbeiten",
        ),
    ],
)
def test_message_of_a_failed_server_or_of_maintenance_is_a_soft_error(title: str) -> None:
    assert error_of(title, "Please come back later.") is Reason.SOFT_ERROR


@pytest.mark.parametrize(
    ("title", "content"),
    [
        ("How to fix a 404 error", "Look at the log."),
        ("Route 404 through Norfolk", "The road."),
        ("Errors — module not found in Node.js", "Install it."),
        ("404 Not Found", "A long explanation. " * 200),
        ("Internal Server Error | API errors", "A long explanation. " * 40),
        ("Wartung | Heizungsbau Meier", "Wir warten Ihre Heizung."),
        ("Fiat 500", "A car."),
        ("Maintenance", "We repair boats."),
        ("Harbor", "Boats leave at ten."),
        ("", ""),
    ],
)
def test_page_about_errors_is_not_an_error_page(title: str, content: str) -> None:
    assert error_of(title, content) is None
