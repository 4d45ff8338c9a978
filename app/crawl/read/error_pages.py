"""Detection of error messages that a server sends as pages with the status 200."""

from __future__ import annotations

import re

from app.crawl.fetch.values import Reason
from backends.text import normalized

TITLE_SEPARATOR = re.compile(r"\s+[-–—−|·•:»«/›‹~]+\s+|[|»«›‹]|(?<=\w):\s+|\s+(?=\()")
MAX_NOT_FOUND_CHARACTERS = 2_000
"""Maximum number of characters on a page that counts as not found. A longer page has content, whatever its title."""
MAX_FAILURE_CHARACTERS = 600
"""Maximum number of characters on a page that counts as a server's error message; documentation of errors is longer."""
MAX_PHRASE_CHARACTERS = 80

THING = "(?:page|file|document|url|address|article|content|resource)"
PHRASES = (
    r"(?:(?:http|error|status|code|fehler|erreur|erro|errore|fout|błąd|ошибка) )*404(?: error| page)?",
    rf"(?:(?:http )?(?:error )?404 )?(?:{THING} )?not found(?: (?:error )?404)?",
    r"(?:(?:oops|sorry|uh oh|whoops) )?(?:the |this |that |your )?(?:requested )?"
    rf"{THING}(?: you (?:requested|were looking for))? "
    r"(?:was not found|is not found|could not be found|cannot be found|can t be found|does not exist|doesn t exist|"
    r"no longer exists|is missing|is no longer available)",
    rf"(?:we )?(?:can t|cannot|couldn t|could not) find (?:the|this|that) {THING}",
    r"(?:fehler )?(?:404 )?(?:die )?(?:angeforderte )?seite (?:wurde )?(?:leider )?nicht gefunden",
    r"(?:erreur )?(?:404 )?(?:la )?page (?:demandée )?(?:non trouvée|introuvable)",
    r"(?:error )?(?:404 )?(?:la )?página no (?:fue )?encontrada",
    r"(?:erro )?(?:404 )?(?:a )?página não (?:foi )?encontrada",
    r"(?:errore )?(?:404 )?(?:la )?pagina non (?:è stata )?trovata",
    r"(?:404 )?(?:de )?pagina (?:is )?niet gevonden",
    r"(?:404 )?(?:nie znaleziono strony|strona nie (?:została znaleziona|istnieje))",
    r"(?:ошибка )?(?:404 )?страница не (?:найдена|существует)",
    r"(?:404 )?ページが?見つかりません(?:でした)?",
    r"(?:404 )?(?:页面未找到|页面不存在|找不到页面|找不到网页|頁面不存在|找不到網頁)",
)
NUMBERED = re.compile(r"(?:(?:erro|erreur|error|errore|fel|feil|fejl|fehler|fout|http|lỗi|virhe) )*404 | 404$")
NOT_FOUND = (
    *("sidan hittades inte", "sidan kunde inte hittas", "sidan finns inte", "sidan saknas"),
    *("siden blev ikke fundet", "siden findes ikke", "siden kunne ikke findes", "siden kan ikke findes"),
    *("siden ble ikke funnet", "siden finnes ikke", "fant ikke siden", "siden eksisterer ikke"),
    *("sivua ei löydy", "sivua ei löytynyt", "hakemaasi sivua ei löytynyt", "stránka nenalezena"),
    *("stránka nebyla nalezena", "stránka neexistuje", "stránka nenájdená", "stránka sa nenašla"),
    *("stránka nebola nájdená", "stranica nije pronađena", "stran ni najdena", "az oldal nem található"),
    *("oldal nem található", "a keresett oldal nem található", "сторінку не знайдено", "сторінка не знайдена"),
    *("сторінки не існує", "страницата не е намерена", "страницата не е открита", "страница није пронађена"),
    *(
        "페이지를 찾을 수 없습니다",
        "페이지가 존재하지 않습니다",
        "존재하지 않는 페이지입니다",
        "الصفحة غير موجودة",
        "لم يتم العثور على الصفحة",
    ),
    *("الصفحة المطلوبة غير موجودة", "הדף לא נמצא", "העמוד לא נמצא", "הדף המבוקש לא נמצא", "صفحه یافت نشد"),
    *("صفحه مورد نظر یافت نشد", "η σελίδα δεν βρέθηκε", "η σελίδα δε βρέθηκε", "δεν βρέθηκε η σελίδα"),
    *("pagina nu a fost găsită", "pagina nu a fost gasita", "pagina nu există", "pagina negăsită"),
    *("không tìm thấy trang", "trang không tồn tại", "không tìm thấy trang bạn yêu cầu"),
    *("halaman tidak ditemukan", "halaman tidak tersedia", "halaman tidak dijumpai", "sayfa bulunamadı"),
    *("aradığınız sayfa bulunamadı", "sayfa mevcut değil", "lehekülge ei leitud", "lapa nav atrasta"),
    *("puslapis nerastas", "pàgina no trobada", "no s ha trobat la pàgina", "ไม่พบหน้า"),
    *("ไม่พบหน้าที่คุณต้องการ", "पृष्ठ नहीं मिला", "পৃষ্ঠাটি পাওয়া যায়নি"),
)
"""Messages that a page was not found, without the number 404, in languages that ``PHRASES`` does not cover."""
FAILURES = (
    *("internal server error", "error 500", "500 error", "server error", "500 server error", "http error 500"),
    *("500 internal server error", "bad gateway", "502 bad gateway", "service unavailable"),
    *("503 service unavailable", "service temporarily unavailable", "503 service temporarily unavailable"),
    *("gateway timeout", "gateway time out", "504 gateway timeout", "504 gateway time out"),
    *("web server is down", "error establishing a database connection"),
    *("there has been a critical error on this website", "under maintenance", "site under maintenance"),
    *("website under maintenance", "this site is under maintenance", "we are under maintenance"),
    *("down for maintenance", "we are down for maintenance", "briefly unavailable for scheduled maintenance"),
    *("briefly unavailable for scheduled maintenance check back in a minute", "we ll be back soon"),
    *("site is undergoing maintenance", "our site is undergoing maintenance", "interner serverfehler"),
    *("wartungsarbeiten", "dienst nicht verfügbar", "diese seite wird gerade gewartet"),
    *("erreur interne du serveur", "erreur serveur", "site en maintenance", "en maintenance"),
    *("maintenance en cours", "service indisponible", "error interno del servidor", "en mantenimiento"),
    *("sitio en mantenimiento", "página en mantenimiento", "servicio no disponible"),
    *("errore interno del server", "sito in manutenzione", "in manutenzione", "servizio non disponibile"),
    *("erro interno do servidor", "em manutenção", "site em manutenção", "serviço indisponível"),
    *("interne serverfout", "in onderhoud", "website in onderhoud", "wewnętrzny błąd serwera"),
    *("przerwa techniczna", "strona w trakcie prac konserwacyjnych", "внутренняя ошибка сервера"),
    *("технические работы", "сайт на обслуживании", "site bakımda", "internt serverfel", "メンテナンス中"),
    *(
        "ただいまメンテナンス中です",
        "サーバーエラー",
        "系统维护中",
        "网站维护中",
        "服务器错误",
        "서버 오류",
        "점검 중입니다",
        "서비스 점검 중",
    ),
    *("sedang dalam pemeliharaan", "đang bảo trì"),
)
"""Messages that a server failed or is under maintenance."""
NO_WORD = re.compile(r"[\W_]+")


def error_of(title: str, content: str) -> Reason | None:
    """Return the reason to skip an error page: its title or first line is an error message, and little text follows.

    ``soft_404`` means that the page does not exist; ``soft_error`` that its server has a temporary problem. ``None``
    for other pages.
    """
    if len(content) > MAX_NOT_FOUND_CHARACTERS:
        return None
    for line in (title, content.partition("\n")[0]):
        parts = [line, *TITLE_SEPARATOR.split(line)]
        messages = {_words(part) for part in parts if len(part) <= MAX_PHRASE_CHARACTERS}
        if any(PHRASE.fullmatch(message) or NUMBERED.sub("", message) in _NOT_FOUND for message in messages):
            return Reason.SOFT_404
        if len(content) <= MAX_FAILURE_CHARACTERS and not messages.isdisjoint(_FAILURES):
            return Reason.SOFT_ERROR
    return None


def _words(text: str) -> str:
    return NO_WORD.sub(" ", normalized("NFC", text.lower())).strip()


PHRASE = re.compile("|".join(PHRASES))
_NOT_FOUND, _FAILURES = frozenset(map(_words, NOT_FOUND)), frozenset(map(_words, FAILURES))
