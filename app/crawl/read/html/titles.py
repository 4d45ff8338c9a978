"""Titles: the suffix that a site's titles share, such as `` | Acme`` or `` — Python 3.13 documentation``, and titles of
error pages with status 200.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

SEPARATOR = re.compile(r"\s+[-–—−|·•:»«/›‹~]+\s+|[|»«›‹]|(?<=\w):\s+|\s+(?=\()")
MIN_TITLES = 3
MIN_SHARE = 0.5
"""Minimum share of a site's titles that end with the shared suffix."""


def shared_suffix(titles: Iterable[str]) -> str:
    """The suffix that most titles of a site share, including the separator before it; empty without one.

    The most frequent suffix wins; ties go to the longest. There is no shared suffix for fewer than three distinct
    titles.
    """
    distinct = set(titles)
    counts = Counter(suffix for title in distinct for suffix in set(_suffixes(title)))
    min_count = max(MIN_TITLES, MIN_SHARE * len(distinct))
    frequent = [(count, len(suffix), suffix) for suffix, count in counts.items() if count >= min_count]
    return max(frequent)[2] if frequent else ""


def own_title(title: str, suffix: str) -> str:
    """Return a page's title without its site's suffix. A title that consists only of the suffix stays unchanged."""
    own = title.removesuffix(suffix).strip()
    return own or title


def _suffixes(title: str) -> Iterator[str]:
    return (title[match.start() :] for match in SEPARATOR.finditer(title) if match.start() > 0)


MAX_CHARACTERS = 2_000
"""Maximum number of characters on an error page. A page with more text has content, whatever its title."""
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
    """Whether a page is an error page despite its status: its title or first line says so, and little text follows."""
    if len(content) > MAX_CHARACTERS:
        return False
    for line in (title, content.partition("\n")[0]):
        parts = [line, *SEPARATOR.split(line)]
        if any(PHRASE.fullmatch(_words(part)) for part in parts if len(part) <= MAX_PHRASE_CHARACTERS):
            return True
    return False


def _words(text: str) -> str:
    return NO_WORD.sub(" ", text.lower()).strip()
