"""Synonyms as the search servers get them: split into words, with the inflected forms of their words.

A server applies synonyms only to words that are spelled exactly like them. Each word, and the last word of each phrase,
is therefore accompanied by its usual inflected forms, so that a search for *couches* finds what *couch* finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from backends.analysis.languages import stems_of_terms
from backends.languages import LANGUAGES
from backends.query import MAX_USED_SYNONYMS, SearchSettings, Synonyms, split_synonyms
from backends.servers.tokenizer import QueryPart, query_parts, split_words
from backends.text import UNSPACED_RUN

_DEFAULT_LANGUAGE = "en"
"""Language of the inflected forms for a site without a language; English plurals are used in many languages."""

_MIN_INFLECTED_LETTERS = 2
_MAX_FORMS = 6
"""Maximum number of inflected forms of a word; each one costs Typesense another search of the index."""

Phrase = tuple[str, ...]
Entry = tuple[tuple[Phrase, ...], tuple[Phrase, ...]]
"""Phrases in queries to which it applies, and the phrases found; equal for words with the same meaning.

The inflected forms of a one-way synonym are found, too: Typesense allows no typing errors if synonyms find something.
"""

Entries = tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class SynonymIndex:
    """The synonyms of a site that have an effect, in folded words with inflected forms, indexed for lookup.

    Attributes:
        by_first_word: Phrases that may be searched for, with the phrases that are then found, by their first words.
        words_by_letter: Words of the phrases that may be searched for, by their first letters.
    """

    entries: Entries
    by_first_word: Mapping[str, Sequence[tuple[Phrase, Sequence[Phrase]]]]
    words_by_letter: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, settings: SearchSettings) -> SynonymIndex:
        """Return the index of the settings' synonyms."""
        return _index(settings.synonyms, settings.language or _DEFAULT_LANGUAGE)

    def synonyms_of(self, parts: Iterable[QueryPart]) -> list[Phrase]:
        """Return the phrases that are synonyms of a phrase in a query."""
        words = tuple(word for part in parts if not part.excluded for word in part.words)
        return [
            phrase
            for index, word in enumerate(words)
            for searched, others in self.by_first_word.get(word, ())
            if words[index : index + len(searched)] == searched
            for phrase in others
        ]


@lru_cache(maxsize=64)
def _index(synonyms: Synonyms, language: str) -> SynonymIndex:
    split = (tuple(map(tuple, phrases)) for phrases in split_synonyms(synonyms, split_words))
    entries = tuple(
        (_with_forms(language, searched), _with_forms(language, tuple(dict.fromkeys((*others, *searched)))))
        for searched, others in split
        if searched and len({*searched, *others}) > 1
    )
    by_word: dict[str, list[tuple[Phrase, Sequence[Phrase]]]] = {}
    by_letter: dict[str, dict[str, None]] = {}
    for searched, others in entries:
        for phrase in searched:
            by_word.setdefault(phrase[0], []).append((phrase, others))
            for word in phrase:
                by_letter.setdefault(word[0], {})[word] = None
    return SynonymIndex(entries, by_word, {letter: tuple(words) for letter, words in by_letter.items()})


def _with_forms(language: str, phrases: Sequence[Phrase]) -> tuple[Phrase, ...]:
    forms = [(*phrase[:-1], form) for phrase in phrases for form in inflected_forms(language, phrase[-1])]
    # A search uses a limited number of synonyms: forms must not displace the site's own.
    return tuple(dict.fromkeys((*phrases, *forms)))[: max(len(phrases), MAX_USED_SYNONYMS)]


def inflected_forms(language: str, word: str) -> list[str]:
    """Return the likely inflected forms of a folded word, the most similar in length first.

    A form replaces one of the language's endings by another, and has the same stem. They include some forms
    that no one writes (*couchs*), which find nothing.
    """
    record = LANGUAGES.get(language)
    if record is None or not (record.endings and word.isalpha() and len(word) >= _MIN_INFLECTED_LETTERS):
        return []
    endings = record.endings.split()
    bases = [word, *(word.removesuffix(ending) for ending in endings if word.endswith(ending))]
    forms = {base + ending for base in bases for ending in ("", *endings) if len(base) >= _MIN_INFLECTED_LETTERS}
    forms.discard(word)
    own_stem, *stems = stems_of_terms(language, [word, *forms])
    related = [form for form, form_stem in zip(forms, stems, strict=True) if form_stem == own_stem]
    return sorted(related, key=lambda form: (abs(len(form) - len(word)), form))[:_MAX_FORMS]


class SynonymChange:
    """The difference between the synonyms of two settings, to find out which queries it affects."""

    def __init__(self, before: SearchSettings, after: SearchSettings):
        old, new = SynonymIndex.of(before).entries, SynonymIndex.of(after).entries
        changed = (
            cluster
            for cluster in _clusters([*old, *new])
            if [entry for entry in old if cluster.issuperset(entry[0])]
            != [entry for entry in new if cluster.issuperset(entry[0])]
        )
        self._words = frozenset(word for cluster in changed for phrase in cluster for word in phrase)

    def concerns(self, query: str) -> bool:
        """Whether the results of a query may differ after the change."""
        words = {word for part in query_parts(query) for word in part.words}
        runs = [word for word in words if UNSPACED_RUN.match(word)]
        return any(word in words or any(word in run for run in runs) for word in self._words)


def _clusters(entries: Iterable[Entry]) -> list[frozenset[Phrase]]:
    """Merge the phrases of entries that share one, because a change of one may affect the others."""
    clusters: list[frozenset[Phrase]] = []
    for searched, others in entries:
        phrases = frozenset((*searched, *others))
        touched = [cluster for cluster in clusters if cluster & phrases]
        clusters = [cluster for cluster in clusters if not cluster & phrases]
        clusters.append(phrases.union(*touched))
    return clusters
