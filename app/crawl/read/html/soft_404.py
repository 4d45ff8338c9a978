"""Pages that say "not found" although their server says 200."""

from __future__ import annotations

import re

from app.crawl.read.html.titles import SEPARATOR

MAX_CHARACTERS = 2_000
"""Pages with more text than this are about something, whatever their title."""
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
PHRASE = re.compile("|".join(PHRASES))
NO_WORD = re.compile(r"[\W_]+")


def is_soft_404(title: str, content: str) -> bool:
    """Tell whether a page only says that there is none: its title or first line says so, and little follows."""
    if len(content) > MAX_CHARACTERS:
        return False
    for line in (title, content.partition("\n")[0]):
        parts = [line, *SEPARATOR.split(line)]
        if any(PHRASE.fullmatch(_words(part)) for part in parts if len(part) <= MAX_PHRASE_CHARACTERS):
            return True
    return False


def _words(text: str) -> str:
    return NO_WORD.sub(" ", text.lower()).strip()
