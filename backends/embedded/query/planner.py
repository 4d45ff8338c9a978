"""From a parsed query to a query of tantivy that ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import tantivy

from backends.base import SearchSettings
from backends.embedded.analysis.languages import likely_languages, stop_words
from backends.embedded.analysis.normalization import RUN, fold, pieces_of
from backends.embedded.analysis.vietnamese import TONAL, has_tones, may_have_tones
from backends.embedded.index.schema import MARKS, TEXT_FIELDS, text_mark
from backends.embedded.index.snapshots import Snapshot
from backends.embedded.query.parser import ParsedQuery, Unit, UnitKind, units_of
from backends.embedded.query.phrases import Phrase
from backends.embedded.query.ranking import RANKING, Ranking
from backends.embedded.query.term_queries import FormQueries, ToneMatches, best_of
from backends.embedded.query.variants import Expansion, Form, expand, written_together
from backends.embedded.results.highlight_terms import Marks

Must, MustNot, Should = tantivy.Occur.Must, tantivy.Occur.MustNot, tantivy.Occur.Should
_Query = tantivy.Query


@dataclass(frozen=True, slots=True)
class _Word:
    """What finds a word of the query.

    Attributes:
        query: Everything that may stand for it.
        as_typed: The same without what has another tone.
        exact: What has it without an error or a missing end, worth a bonus.
    """

    unit: Unit
    expansion: Expansion
    needed: bool
    query: tantivy.Query | None
    as_typed: tantivy.Query | None
    exact: tantivy.Query | None
    rarity: float


class Plan:
    """How one query is run against one snapshot.

    Args:
        fields: The text fields that are searched; all when empty.
    """

    def __init__(
        self, snapshot: Snapshot, parsed: ParsedQuery, settings: SearchSettings, fields: Sequence[str] = (),
        ranking: Ranking = RANKING, text: str = "",
    ):  # fmt: skip
        self.text = text
        self.snapshot = snapshot
        self.parsed = parsed
        self.ranking = ranking
        wanted = [name for name in TEXT_FIELDS if not fields or name in fields]
        self.fields = tuple(name for name in wanted if name != "excerpt" or snapshot.has_excerpts) or tuple(wanted[:1])
        self.weights = {
            name: ranking.fields[name] * max(0.0, float(settings.weights.get(name, 1.0))) for name in self.fields
        }
        self.forms = FormQueries(snapshot, self.weights, ranking)
        self.languages = self._languages(settings)
        self.stops = self._stop_words(settings)
        parsed.shorten(self._worth)
        self.synonyms = _phrases_by_synonym(settings.synonyms)
        surfaces = [unit.surface for unit in parsed.units]
        self.may_have_tones = not TONAL.isdisjoint(self.languages) and may_have_tones(surfaces)
        self.has_tones = self.may_have_tones and has_tones(" ".join(surfaces))
        self.marks = Marks()
        self.words = self._words()

    # --- what the searches run

    @cached_property
    def every_word(self) -> tantivy.Query:
        """Documents that have every word that must match, ranked."""
        needed = [word.query or _Query.empty_query() for word in self.words if word.needed]
        clauses = [(Must, query) for query in needed] + self._demands()
        if not clauses:
            return _Query.empty_query()
        return _Query.boolean_query(clauses + self._extras)

    @cached_property
    def some_words(self) -> tantivy.Query | None:
        """Documents that have at least one word, or all parts of a compound, ranked; ``None`` if every word says so."""
        needed = [word for word in self.words if word.needed]
        known = [word for word in needed if word.query is not None]
        in_parts = [self.forms.every(dict.fromkeys(unit.terms), self.ranking.parts) for unit in self._in_parts]
        parts = [query for query in in_parts if query is not None]
        if (len(needed) < 2 or not known) and not parts:
            return None
        matching = [(Should, word.query) for word in known if word.query] + [(Should, query) for query in parts]
        clauses = [(Must, _Query.boolean_query(matching)), *self._demands(), *self._extras]
        if len(known) == len(needed):
            total = sum(word.rarity for word in known)
            every = _Query.boolean_query([(Must, word.as_typed) for word in known if word.as_typed])
            share = self.ranking.every_of_few if self.is_short else self.ranking.every_word
            clauses.append((Should, _Query.const_score_query(every, share * total)))
        return _Query.boolean_query(clauses)

    @cached_property
    def any_word(self) -> tantivy.Query | None:
        """Documents that have at least one word, stop words included, ranked; for sentences that find too little."""
        stops = [(Should, word.query) for word in self.words if not word.needed and word.query is not None]
        if len(self.words) < self.ranking.sentence or len(stops) < 2:
            return None
        words = self.some_words or self.every_word
        # However many stop words a document has, it comes after those with a word of meaning.
        floor = _Query.boolean_query([(Must, _Query.boolean_query(stops)), *self._demands()])
        return _Query.boolean_query([(Should, words), (Should, _Query.boost_query(floor, 0.01))])

    @cached_property
    def loose_parts(self) -> tantivy.Query | None:
        """Documents that have parts of the compounds, for when nothing else is found."""
        parts = [self.forms.one(Form((term,), 1.0)) for unit in self.parsed.loose_compounds for term in unit.terms]
        clauses = [(Should, part) for part in parts if part is not None]
        if not clauses:
            return None
        return _Query.boolean_query([(Must, _Query.boolean_query(clauses)), *self._demands()])

    @property
    def phrases_alone(self) -> tantivy.Query:
        """Documents that have the quoted phrases."""
        return _Query.boolean_query(self._demands())

    @property
    def quotes_in_a_sentence(self) -> bool:
        """Whether quoted words may only be a name in a sentence: there are words around them, and enough of all."""
        around = sum(_words_in(unit.terms[:1]) for unit in self.parsed.units)
        quoted = sum(_words_in(phrase.words) for phrase in self.parsed.phrases)
        return bool(quoted) and around > 1 and around + quoted >= self.ranking.sentence

    def mark_parts(self, *, loose: bool = False) -> None:
        """Mark the parts of compounds, too: documents are shown that have all of them, or if ``loose`` any, apart."""
        for unit in self.parsed.loose_compounds if loose else self._in_parts:
            for term in unit.terms:
                if term not in self.stops:
                    self.marks.add((term,), self.parsed.units.index(unit))

    @property
    def _in_parts(self) -> list[Unit]:
        """The compounds that are looked for in parts: of these, each means something (those of ``U.S.`` do not)."""
        long = [unit for unit in self.parsed.loose_compounds if min(map(len, unit.terms)) > 1]
        return long[: self.ranking.most_loose]

    # --- words

    def _worth(self, unit: Unit) -> float:
        """How much a word tells of what is wanted: its rarity, and that of a stop word nothing."""
        if self._is_stop(unit):
            return 0.0
        return self.snapshot.rarity(min(self.snapshot.most_frequency(self.fields, term) for term in unit.terms))

    def _is_stop(self, unit: Unit) -> bool:
        return unit.kind is UnitKind.WORD and unit.term in self.stops

    def _languages(self, settings: SearchSettings) -> tuple[str, ...]:
        if settings.language:
            return (settings.language,)
        return likely_languages([unit.surface for unit in self.parsed.units], self.snapshot.languages)

    def _stop_words(self, settings: SearchSettings) -> frozenset[str]:
        if settings.stop_words is not None:
            return frozenset(fold(word) for word in settings.stop_words)
        found: frozenset[str] = frozenset()
        for language in self.languages:
            found |= stop_words(language)
        return found

    def _words(self) -> list[_Word]:
        units = self.parsed.units
        is_stop = [self._is_stop(unit) for unit in units]
        if all(is_stop):
            is_stop = [False] * len(units)
        guessed = 0
        others = self._synonyms_of_units()
        for at, forms in self._written_together():
            others[at] += forms
        words: list[_Word] = []
        self.is_short = is_stop.count(False) <= self.ranking.few
        for at, unit in enumerate(units):
            is_last = at == len(units) - 1 and self.parsed.open_end
            with_guesses = not is_stop[at] and guessed < self.ranking.most_guessed
            expansion = expand(self.snapshot, unit, self.fields, self.languages, is_last, with_guesses, self.ranking)
            guessed += expansion.guessed
            words.append(self._word(at, unit, expansion, not is_stop[at], others[at]))
        return words

    def _word(self, number: int, unit: Unit, expansion: Expansion, needed: bool, others: list[Form]) -> _Word:
        forms = self._forms(expansion, others)
        for form in forms:
            self.marks.add(form.words or form.terms, number)
        if expansion.completed and unit.kind is UnitKind.WORD:
            self.marks.prefixes.setdefault(expansion.completed, number)
        toned = self._toned(unit)
        frequency = expansion.frequency if toned is None else min(expansion.frequency, toned.most)
        rarity = self.snapshot.rarity(frequency)
        query = as_typed = self.forms.any(forms, rarity)
        if toned is not None:
            own = self.forms.any(expansion.forms, rarity)
            as_typed = self._best_of([self._with_tone(toned, own), self.forms.any(others, rarity)])
            if own is not None:
                query = self._best_of([_Query.boost_query(own, self.ranking.other_tone), as_typed])
        exact = None
        literal = [form for form in forms if not form.errors]
        bonus = self.ranking.exact_alone if len(self.parsed.units) == 1 else self.ranking.exact_word
        if bonus and self.is_short and needed and literal and (toned is not None or len(literal) < len(forms)):
            matching = self.forms.any(literal)
            if toned is not None:
                matching = self._with_tone(toned, matching)
            if matching is not None:
                exact = _Query.const_score_query(matching, bonus * rarity)
        return _Word(unit, expansion, needed, query, as_typed, exact, rarity)

    def _toned(self, unit: Unit) -> ToneMatches | None:
        """What has a word with its tone, in a query in which any has an accent: to have none is a tone, too."""
        if not self.may_have_tones or unit.kind is not UnitKind.WORD:
            return None
        return self.forms.toned(unit.surface)

    def _with_tone(self, toned: ToneMatches, query: tantivy.Query | None) -> tantivy.Query | None:
        """What has a word with its tone, and what matches in documents without: the query may be meant without, too."""
        if query is None:
            return toned.query
        return self._best_of([toned.query, self.forms.without_tones(query, foreign=not self.has_tones)])

    def _best_of(self, choices: Sequence[tantivy.Query | None]) -> tantivy.Query | None:
        return best_of(choices, self.ranking.form_tie)

    def _forms(self, expansion: Expansion, others: list[Form]) -> list[Form]:
        """Every form once, without a known word's halves of which the first is a stop word (``upon``: ``up on``)."""
        best: dict[tuple[str, ...], Form] = {}
        for form in (*expansion.forms, *others):
            known = best.get(form.terms)
            if known is None or form.worth > known.worth:
                best[form.terms] = form
        halves = expansion.halves
        if halves is not None and halves[0] in self.stops and len(best) > 1:
            del best[halves]
        return list(best.values())

    def _synonyms_of_units(self) -> list[list[Form]]:
        """For each unit, what may stand in its place: all words of a phrase share the synonyms of the phrase."""
        units = self.parsed.units
        found: list[list[Form]] = [[] for _ in units]
        longest = max((len(member) for member in self.synonyms), default=0)
        for start in range(len(units)):
            terms: tuple[str, ...] = ()
            for end in range(start, len(units)):
                terms += units[end].terms
                if len(terms) > longest:
                    break
                forms = [
                    Form(other.terms, self.ranking.synonym, words=other.words) for other in self.synonyms.get(terms, ())
                ]
                for at in range(start, end + 1):
                    found[at] += forms
        return found

    def _written_together(self) -> Iterator[tuple[int, list[Form]]]:
        """For each of two neighbours, the words they are when written together."""
        units = self.parsed.units
        for left, right in pairwise(range(len(units))):
            if right not in self.parsed.breaks and self._may_join(units[left], units[right]):
                is_open = right == len(units) - 1 and self.parsed.open_end
                forms = written_together(self.snapshot, self.fields, units[left], units[right], is_open, self.ranking)
                yield left, forms
                yield right, forms

    def _may_join(self, left: Unit, right: Unit) -> bool:
        """Whether two words may mean what they are together: an article and a word, or two numbers, never do."""
        first, second = left.term, right.term
        return (
            left.kind is UnitKind.WORD
            and right.kind in (UnitKind.WORD, UnitKind.COMPOUND)
            and first not in self.stops
            and first + second not in self.stops
            and not (second in self.stops and len(second) == 1)
            and not (first.isdigit() and second.isdigit())
        )

    # --- what is not a word that must match

    def _demands(self) -> list[tuple[tantivy.Occur, tantivy.Query]]:
        """Quoted phrases, and what a minus leaves out."""
        demands: list[tuple[tantivy.Occur, tantivy.Query]] = []
        for number, phrase in enumerate(self.parsed.phrases, len(self.words)):
            query = self.forms.one(Form(phrase.terms, 1.0))
            demands.append((Must, query or _Query.empty_query()))
            self.marks.add(phrase.words, number)
        for excluded in self.parsed.excluded:
            query = self.forms.one(Form(excluded.terms, 1.0))
            if query is not None:
                demands.append((MustNot, query))
        if self.parsed.excluded and not self.parsed.units and not self.parsed.phrases:
            demands.append((Must, _Query.all_query()))
        return demands

    @cached_property
    def _extras(self) -> list[tuple[tantivy.Occur, tantivy.Query]]:
        """What adds to the score and need not match: stop words, neighbours, the whole title."""
        extras: list[tuple[tantivy.Occur, tantivy.Query]] = []
        for word in self.words:
            if not word.needed and word.query is not None:
                extras.append((Should, _Query.boost_query(word.query, self.ranking.stop)))
            if word.exact is not None:
                extras.append((Should, word.exact))
        for piece in self.parsed.characters:
            count = self.snapshot.most_frequency(self.fields, piece)
            query = self.forms.one(Form((piece,), self.ranking.character), self.snapshot.rarity(count))
            if query is not None:
                extras.append((Should, query))
        extras += [(Should, query) for query in self._neighbours()]
        if self.ranking.whole_title and "title" in self.weights:
            title = _Query.term_query(self.snapshot.schema, MARKS, text_mark("title", self.text))
            total = sum(word.rarity for word in self.words)
            extras.append((Should, _Query.const_score_query(title, self.ranking.whole_title * total)))
        return extras

    def _neighbours(self) -> list[tantivy.Query]:
        schema, frequency = self.snapshot.schema, self.snapshot.frequency
        needed = [word.unit.term for word in self.words if word.needed and word.unit.kind is UnitKind.WORD]
        found: list[tantivy.Query] = []
        for left, right in pairwise(needed):
            for name, boost in (("title", self.ranking.title_phrase), ("content", self.ranking.content_phrase)):
                if name in self.weights and boost and frequency(name, left) and frequency(name, right):
                    query = _Query.phrase_query(schema, name, [left, right], slop=1 if name == "title" else 3)
                    found.append(_Query.boost_query(query, boost))
        return found[:16]


def _words_in(words: Sequence[str]) -> float:
    """How many words these are about: of a script without spaces, pairs of characters are half a word each."""
    return sum(0.5 * max(1, len(pieces_of(word)) - 1) if RUN.match(word) else 1 for word in words)


@lru_cache(maxsize=64)
def _phrases_by_synonym(groups: tuple[tuple[str, ...], ...]) -> Mapping[tuple[str, ...], list[Phrase]]:
    """What may stand for each synonym, by its terms in a query."""
    found: dict[tuple[str, ...], list[Phrase]] = {}
    for group in groups:
        members = {tuple(term for unit in units_of(word) for term in unit.terms): Phrase.of(word) for word in group}
        members.pop((), None)
        for terms in members:
            found.setdefault(terms, []).extend(members[other] for other in members if other != terms)
    return found
