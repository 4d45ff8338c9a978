"""A site's search rules: finding the rules that apply to a search, and applying their effects.

The rules are indexed once per site record: by exact query, by words, and as rules for any query. A search therefore
checks only rules that may apply to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import chain, islice
from operator import attrgetter
from typing import Any

from backends.analysis.languages import stems
from backends.analysis.normalization import terms_of
from backends.errors import BackendRejected
from backends.filters import And, Filter, Not, Or, all_of, fields_of, parse_filter
from backends.languages import LANGUAGES
from backends.query import NO_EFFECTS, Boost, SearchQuery
from backends.standard_fields import STANDARD_FIELDS
from backends.text import normal_form
from schemas.validation.documents import parse_instant

_STEMMED = tuple(code for code, language in LANGUAGES.items() if language.stemmer)
_Words = tuple[frozenset[str], ...]
"""The stems of each word."""

MAX_WORDS = 48
"""Maximum number of distinct words of a query or rule to compare. Each word is stemmed in every language."""


@dataclass(frozen=True, slots=True)
class Rule:
    """An enabled rule, prepared for matching.

    Attributes:
        position: Position among all rules.
        conditions: Conditions that the search's own filter must contain.
        first, end: Start and end of the period in which the rule applies; ``None`` for no limit.
        words: Words that a query must contain.
        action: Effects of the rule, as stored.
        pinned, hidden: Documents that the rule pins or hides.
        needed_fields: Additional fields that documents must have for its filter to apply.
    """

    position: int
    id: str
    conditions: frozenset[Filter]
    first: datetime | None
    end: datetime | None
    words: _Words
    action: Mapping[str, Any]
    boost: Boost | None
    filter: Filter | None
    pinned: tuple[str, ...]
    hidden: tuple[str, ...]
    needed_fields: frozenset[str]

    @classmethod
    def of(cls, position: int, stored: Mapping[str, Any], words: _Words) -> Rule:
        """Return a rule from its stored form."""
        when, action = stored["when"], stored["do"]
        first, end = when.get("from"), when.get("to")
        boost = action.get("boost")
        filter = parse_filter(action["filters"]) if "filters" in action else None
        return cls(
            position,
            stored["id"],
            frozenset(conjuncts(parse_filter(when["filters"]))) if "filters" in when else frozenset(),
            None if first is None else parse_instant(first),
            None if end is None else parse_instant(end),
            words,
            action,
            None if boost is None else Boost(boost["rank"], parse_filter(boost["filters"])),
            filter,
            tuple(action.get("pin", ())),
            tuple(action.get("hide", ())),
            frozenset(fields_of(filter) if filter is not None else ()).difference(STANDARD_FIELDS),
        )


@dataclass(slots=True)
class _Index:
    """A site's rules, indexed by how they are matched with a query."""

    same: dict[str, list[Rule]] = field(default_factory=dict)
    starts: dict[str, list[Rule]] = field(default_factory=dict)
    contained: dict[str, list[Rule]] = field(default_factory=dict)
    words: dict[str, list[Rule]] = field(default_factory=dict)
    always: list[Rule] = field(default_factory=list)


class RuleSet:
    """The rules of a site.

    Args:
        stored: The stored rules.
        language: The site's language, if set; otherwise words may be inflected in any language.
    """

    def __init__(self, stored: Sequence[Mapping[str, Any]] = (), language: str | None = None):
        self._stored = [rule for rule in stored if rule["enabled"]]
        self._languages = (language,) if language else _STEMMED

    def apply(self, query: SearchQuery, now: Callable[[], datetime]) -> SearchQuery:
        """Return a query with the changes of the rules that apply to it; the same query if no rule applies."""
        if not self._stored:
            return query
        rules = sorted(self._candidates(query.text), key=attrgetter("position"))
        if any(rule.conditions for rule in rules):
            own_conditions = _conditions_of(query)
            rules = [rule for rule in rules if rule.conditions <= own_conditions]
        if any(rule.first or rule.end for rule in rules):
            moment = now()
            rules = [
                rule
                for rule in rules
                if (rule.first is None or rule.first <= moment) and (rule.end is None or moment < rule.end)
            ]
        return _with_effects(query, rules) if rules else query

    def _candidates(self, text: str) -> Iterator[Rule]:
        """Yield the rules that may apply to a text, each once."""
        index = self._index
        typed = normal_form(text)
        yield from index.always
        yield from index.same.get(typed, ())
        for start, rules in index.starts.items():
            if typed.startswith(start):
                yield from rules
        for part, rules in index.contained.items():
            if part in typed:
                yield from rules
        if index.words:
            every = frozenset().union(*self._words(typed))
            # A word has a stem in each language, and the index lists a rule under all of them.
            by_position = {
                rule.position: rule for stem in every.intersection(index.words) for rule in index.words[stem]
            }
            for rule in by_position.values():
                for stems in rule.words:
                    if stems.isdisjoint(every):
                        break
                else:
                    yield rule

    @cached_property
    def _index(self) -> _Index:
        index = _Index()
        for position, stored in enumerate(self._stored):
            when = stored["when"]
            query, match = when.get("query"), when["match"]
            words = self._words(query) if query is not None and match == "words" else ()
            rule = Rule.of(position, stored, words)
            if query is None:
                index.always.append(rule)
            elif match == "words":
                for stem in words[0] if words else ():
                    index.words.setdefault(stem, []).append(rule)
            else:
                by_text = {"is": index.same, "starts": index.starts, "contains": index.contained}[match]
                by_text.setdefault(query, []).append(rule)
        return index

    def _words(self, text: str) -> _Words:
        words = dict.fromkeys(terms_of(text))
        return tuple(_stems(self._languages, word) for word in islice(words, MAX_WORDS))


NO_RULES = RuleSet()


@lru_cache(maxsize=8192)
def _stems(languages: tuple[str, ...], word: str) -> frozenset[str]:
    """Return the stems of a folded word, each with its language."""
    return frozenset(f"{language}:{stem}" for language in languages for stem in stems(language, word))


def conjuncts(expression: Filter) -> Iterator[Filter]:
    """Yield the conditions that must all hold for a filter, without their positions in its text."""
    if isinstance(expression, And):
        for operand in expression.operands:
            yield from conjuncts(operand)
    else:
        yield _without_positions(expression)


def _without_positions(node: Filter) -> Filter:
    if isinstance(node, Not):
        return Not(_without_positions(node.operand))
    if isinstance(node, And | Or):
        return type(node)(tuple(map(_without_positions, node.operands)))
    return replace(node, position=0)


def _conditions_of(query: SearchQuery) -> frozenset[Filter]:
    """Return the conditions in a search's own filter; empty if the filter is not in the portable grammar."""
    own_filters: list[Filter] = [] if query.portable_filter is None else [query.portable_filter]
    if query.native_filter.strip():
        with suppress(BackendRejected):  # The filter may use the engine's own syntax.
            own_filters.append(parse_filter(query.native_filter))
    return frozenset(condition for own_filter in own_filters for condition in conjuncts(own_filter))


def _with_effects(query: SearchQuery, rules: Sequence[Rule]) -> SearchQuery:
    actions = [rule.action for rule in rules]
    text = _first(actions, "replace")
    existing_fields = query.kinds.keys()
    # A filter on a field that no document has would turn every search into an error.
    filters = [rule.filter for rule in rules if rule.filter is not None and rule.needed_fields <= existing_fields]
    conditions = [*([] if query.portable_filter is None else [query.portable_filter]), *filters]
    effects = replace(
        NO_EFFECTS,
        rules=tuple([rule.id for rule in rules]),
        typed=None if text is None else query.text,
        pinned=_all([rule.pinned for rule in rules]),
        hidden=_all([rule.hidden for rule in rules]),
        boosts=tuple([rule.boost for rule in rules if rule.boost is not None]),
        redirect=_first(actions, "redirect") or "",
        notice=_first(actions, "notice"),
    )
    return replace(
        query,
        text=query.text if text is None else text,
        portable_filter=all_of(conditions),
        effects=effects,
    )


def _first(actions: Iterable[Mapping[str, Any]], name: str) -> Any:
    return next((action[name] for action in actions if name in action), None)


def _all(lists: Iterable[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(lists)))
