"""Pages that say "not found" although their server says 200."""

from __future__ import annotations

import re

from app.crawler.reading.titles import SEPARATOR

MAX_CHARACTERS = 2_000
"""Pages with more text than this are about something, whatever their title."""

PHRASE = re.compile(
    r"(?:(?:http |status |server )?(?:error|fehler|erreur|errore?|erro|fout|błąd|ошибка)[ :]*)?404"
    r"(?: ?error)?(?:[ :,.!()-]*(?:page |file |seite |document )?(?:not found|nicht gefunden|introuvable|non trouvée?"
    r"|no encontrad[ao]|non trovat[ao]|não encontrad[ao]|niet gevonden|nie znaleziono|не найдена?|见つかりません|未找到))?[.!]*"
    r"|(?:oops|sorry|uh[- ]oh)?[ ,!.:…-]*(?:the |this |that |requested |your )*(?:page|file|document|url|content|resource|article|site)?"
    r" ?(?:was |is |could |can |cannot |can't |couldn't |we |be |does |doesn't |not )*(?:not found|be found|exist|no longer exists?)[.!]*"
    r"|(?:die )?seite (?:wurde )?(?:leider )?nicht gefunden[.!]*"
    r"|(?:la )?page (?:non trouvée|introuvable|demandée introuvable)[.!]*"
    r"|(?:la )?página (?:no|não) (?:fue |foi )?encontrada[.!]*"
    r"|(?:la )?pagina non (?:è stata )?trovata[.!]*"
    r"|(?:de )?pagina (?:is )?niet gevonden[.!]*"
    r"|(?:nie znaleziono strony|strona nie została znaleziona)[.!]*"
    r"|страница не найдена[.!]*"
    r"|ページが?見つかりません(?:でした)?[。!]*"
    r"|(?:页面未找到|找不到页面|頁面不存在|页面不存在|找不到網頁|找不到网页)[。!]*"
)


def is_soft_404(title: str, content: str) -> bool:
    """Whether a page is a message that there is no page: its title or first line says just that, and little follows."""
    if len(content) > MAX_CHARACTERS:
        return False
    first_line = content.partition("\n")[0]
    parts = [*SEPARATOR.split(title[:200]), title[:200], first_line[:200]]
    return any(PHRASE.fullmatch(part.strip().lower()) for part in parts)
