"""Other spellings of a word, which count as the word itself rather than as typing errors.

* ``tuer``: *Tür*, and ``tür``: *Tuer*. A spelled-out letter must be written with its accent in a document.
* ``lequipe``: *L'Équipe*, and Hebrew words whose geresh was not typed. The parts must be consecutive in a document.
* ``hauptschule``: *Haupt- und Realschule*.
* ``qx58``: ``hafenqx58kran``, if there is nothing else.
* ``申込``: 申し込み. Japanese verbs may be written with or without their endings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice, pairwise, product

import tantivy

from backends.analysis.normalization import fold, terms_of
from backends.analysis.parser import QueryTerm
from backends.embedded.index.documents import MAX_INDEXED_CHARS
from backends.embedded.index.snapshots import Snapshot
from backends.embedded.query.typos import follow_each_other
from backends.text import normalized

_ACCENTED = {"ae": "ä", "oe": "öø", "ue": "ü", "aa": "å"}
_SPELLED_OUT = {ord(letter): digraph for digraph, letters in _ACCENTED.items() for letter in letters}
_DIGRAPH = re.compile("([aou]e|aa)")
_MAX_SPELLINGS = 8
"""Maximum number of spellings of a word or a phrase."""

_MAX_LISTED = 3
"""Maximum number of completions of a word in another spelling, and of documents that are checked for its accents."""

_ELIDED = (
    "c", "d", "j", "l", "m", "n", "s", "t", "qu", "jusqu", "lorsqu", "puisqu", "un", "all", "dall", "dell", "nell",
    "sull", "coll", "quell", "quest", "bell", "sant", "gl", "dagl", "degl", "negl", "sugl",
)  # fmt: skip
"""French, Italian, Catalan, and Maltese words that lose their vowel before another word, folded."""

_AFTER_ELIDED = frozenset("aeiouyh")
_WITH_GERESH = frozenset("גזצתדטחערו")
_HEBREW = re.compile("[\u05d0-\u05ea]{3,}")
_MIN_ELIDED_REST = 3
"""Minimum length, in letters, of a word after an elided one."""

_MIN_SUSPENDED_LETTERS = 3
"""Minimum length of each part of a compound that is shortened beside another one."""

_CONJUNCTIONS = ("und", "oder", "bzw", "en", "of", "och", "eller", "og")
_SUSPENDED = re.compile(r"([^\W\d_]+)- ([^\W\d_]+)\.? ([^\W\d_]+)")
_MIN_INNER_CHARS = 4
"""Minimum length of letters and digits that are looked for within longer ones."""

_BETWEEN_KANJI = (*"しけいっりちきみれえげびめせぎつねべ", "わせ", "もり")
_BEFORE_KANA = (*"わまなとこか",)
_KANJI_PAIR = re.compile("[\u4e00-\u9fff々]{2}")
_KANJI_AND_KANA = re.compile("[\u4e00-\u9fff々][\u3041-\u3096]")


def with_accents(snapshot: Snapshot, word: str, fields: tuple[str, ...], is_last: bool) -> Iterator[str]:
    """Yield the index terms that a word with spelled-out letters may mean: ``tuer`` -> ``tur``, written *Tür*.

    Args:
        word: The word, folded.
        is_last: Whether the word may be unfinished.
    """
    if _DIGRAPH.search(word) is None:
        return
    pieces = _DIGRAPH.split(word)
    for spelling in islice(product(*(_readings(piece) for piece in pieces)), 1, _MAX_SPELLINGS):
        term = "".join(folded for folded, _ in spelling)
        terms = [term] if snapshot.max_doc_frequency(fields, term) else []
        if is_last:
            listed = chain.from_iterable(snapshot.terms(field, term, _MAX_LISTED) for field in fields)
            # A completion of the word as typed spells the letters out.
            terms += [completion for completion, _ in listed if completion != term and not completion.startswith(word)]
        written = re.compile(f"(?<![^\\W_]){''.join(pattern for _, pattern in spelling)}", re.IGNORECASE)
        yield from (
            candidate for candidate in dict.fromkeys(terms) if _is_written(snapshot, fields, candidate, written)
        )


def _readings(piece: str) -> Sequence[tuple[str, str]]:
    """``"ue"`` -> ``("ue", "ue"), ("u", "[ü]")``: the letters of the term and their pattern in a text."""
    plain = (piece, re.escape(piece).replace("ss", "(?:ss|ß)"))
    return (plain, (piece[0], f"[{_ACCENTED[piece]}]")) if piece in _ACCENTED else (plain,)


def _is_written(snapshot: Snapshot, fields: tuple[str, ...], term: str, written: re.Pattern[str]) -> bool:
    """Whether one of the first documents with a term spells it as the pattern ``written``."""
    for field in fields:
        if not snapshot.frequency(field, term):
            continue
        query = tantivy.Query.term_query(snapshot.schema, field, term)
        for _, address in snapshot.searcher.search(query, limit=_MAX_LISTED, count=False).hits:
            if written.search(normalized("NFC", snapshot.searched_text(field, address))):
                return True
    return False


def spelled_out(snapshot: Snapshot, query_term: QueryTerm, fields: tuple[str, ...]) -> Iterator[str]:
    """Yield the index term of a word with its accented letters spelled out, if there is one: ``tür`` -> ``tuer``."""
    if not query_term.surface.isascii():
        term = fold(normalized("NFC", query_term.surface).translate(_SPELLED_OUT))
        if term != query_term.term and snapshot.max_doc_frequency(fields, term):
            yield term


def with_apostrophe(snapshot: Snapshot, word: str, fields: tuple[str, ...], is_last: bool) -> Iterator[tuple[str, str]]:
    """Yield the consecutive terms of a word typed without its apostrophe: ``lequipe`` -> ``l``, ``equipe``.

    Args:
        word: The word, folded.
        is_last: Whether the word may be unfinished.
    """
    for first, rest in _parts(word):
        if snapshot.max_doc_frequency(fields, first):
            rests = [rest]
            if is_last:
                rests += [completion for field in fields for completion, _ in snapshot.terms(field, rest, _MAX_LISTED)]
            for pair in ((first, second) for second in dict.fromkeys(rests)):
                if follow_each_other(snapshot, pair, fields):
                    yield pair


def suspended(snapshot: Snapshot, word: str, fields: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    """Yield the consecutive terms by which documents shorten a compound.

    ``hauptschule`` -> ``haupt``, ``und``, ``realschule``, for a document with *Haupt- und Realschule*.
    """
    for offset in range(_MIN_SUSPENDED_LETTERS, len(word) - _MIN_SUSPENDED_LETTERS + 1):
        head, part = word[:offset], word[offset:]
        if not snapshot.max_doc_frequency(fields, head):
            continue
        for field, conjunction in product(fields, _CONJUNCTIONS):
            if not snapshot.frequency(field, conjunction):
                continue
            query = tantivy.Query.phrase_query(snapshot.schema, field, [head, conjunction])
            for _, address in snapshot.searcher.search(query, limit=_MAX_LISTED, count=False).hits:
                for match in _SUSPENDED.finditer(snapshot.searched_text(field, address)):
                    words = (fold(match[1]), fold(match[2]), fold(match[3]))
                    if words[:2] == (head, conjunction) and words[2].endswith(part):
                        yield words


def within_part_numbers(snapshot: Snapshot, word: str, fields: tuple[str, ...]) -> list[str]:
    """Return index terms that contain a word of letters and digits: ``qx58`` -> ``hafenqx58kran``.

    Compares all terms of the index, so it is only for words that are not found otherwise.
    """
    if len(word) < _MIN_INNER_CHARS or word.isalpha() or word.isdecimal() or not word.isalnum():
        return []
    terms: dict[str, None] = {}
    for field in fields:
        query = tantivy.Query.regex_query(snapshot.schema, field, f".*{word}.*")
        for _, address in snapshot.searcher.search(query, limit=_MAX_LISTED, count=False).hits:
            text = snapshot.searched_text(field, address)[:MAX_INDEXED_CHARS]
            terms |= dict.fromkeys(term for term in terms_of(text) if word in term)
    return list(terms)


def spellings_of_phrase(snapshot: Snapshot, terms: tuple[str, ...], fields: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the terms of a phrase as typed, then in other spellings: ``ueber uns`` -> ``ueber uns``, ``uber uns``."""
    choices: list[list[tuple[str, ...]]] = []
    for term in terms:
        others: list[tuple[str, ...]] = [(other,) for other in with_accents(snapshot, term, fields, False)]
        if not snapshot.max_doc_frequency(fields, term):
            others += with_apostrophe(snapshot, term, fields, False)
        choices.append([(term,), *others])
    return [tuple(chain.from_iterable(choice)) for choice in islice(product(*choices), _MAX_SPELLINGS)]


def _parts(word: str) -> Iterator[tuple[str, str]]:
    if word.isascii():
        for elided in _ELIDED:
            rest = word[len(elided) :]
            if word.startswith(elided) and len(rest) >= _MIN_ELIDED_REST and rest[0] in _AFTER_ELIDED:
                yield elided, rest
    elif _HEBREW.fullmatch(word):
        for offset in range(1, len(word) - 1):
            if word[offset - 1] in _WITH_GERESH:
                yield word[:offset], word[offset:]


def with_endings(snapshot: Snapshot, pair: str, fields: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the spellings of a Japanese pair with a verb's ending: ``申込`` -> (``申し``, ``し込``), ``申し込``."""
    if _KANJI_PAIR.fullmatch(pair):
        endings: Sequence[str] = _BETWEEN_KANJI
    elif _KANJI_AND_KANA.fullmatch(pair):
        endings = _BEFORE_KANA
    else:
        return
    for ending in endings:
        written = f"{pair[0]}{ending}{pair[1]}"
        terms = tuple(first + second for first, second in pairwise(written))
        if any(all(snapshot.frequency(field, term) for term in terms) for field in fields):
            yield terms, written
