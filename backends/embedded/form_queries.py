"""From the forms of a word to queries of tantivy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import tantivy

from backends.embedded.expansion import Form
from backends.embedded.ranking import Ranking
from backends.embedded.snapshots import Snapshot

_Query = tantivy.Query


class FormQueries:
    """Queries for forms of words, in the fields that are searched.

    Args:
        weights: Those fields, and the worth of each.
    """

    def __init__(self, snapshot: Snapshot, weights: Mapping[str, float], ranking: Ranking):
        self._snapshot = snapshot
        self._weights = weights
        self._ranking = ranking

    def one(self, form: Form, rarity: float = 0) -> tantivy.Query | None:
        """The form in every field that has it; ``None`` where none has.

        Args:
            rarity: Of the word; if given, a form of one term is weighed as if it were as rare as that in all fields.
        """
        choices: list[tantivy.Query] = []
        schema, frequency = self._snapshot.schema, self._snapshot.frequency
        for name, weight in self._weights.items():
            boost = weight * form.worth
            if len(form.terms) == 1:
                count = frequency(name, form.terms[0])
                if not count:
                    continue
                query = _Query.term_query(schema, name, form.terms[0])
                if rarity:
                    boost *= self._ranking.balance(rarity, self._snapshot.rarity(count))
            else:
                counts = [frequency(name, term) for term in form.terms]
                if not min(counts):
                    continue
                query = _Query.phrase_query(schema, name, list(form.terms))
            choices.append(_Query.boost_query(query, boost))
        return best_of(choices, self._ranking.field_tie)

    def any(self, forms: Iterable[Form], rarity: float = 0) -> tantivy.Query | None:
        """The best of some forms of a word."""
        return best_of([self.one(form, rarity) for form in forms], self._ranking.form_tie)

    def every(self, terms: Iterable[str], worth: float) -> tantivy.Query | None:
        """Documents that have all of some terms; ``None`` where a term is in no document."""
        parts = [self.one(Form((term,), worth)) for term in terms]
        if None in parts:
            return None
        return _Query.boolean_query([(tantivy.Occur.Must, part) for part in parts if part is not None])


def best_of(choices: Iterable[tantivy.Query | None], tie: float) -> tantivy.Query | None:
    """Documents that match any of some queries, worth the best match and so much of the others."""
    queries = [query for query in choices if query is not None]
    if not queries:
        return None
    return queries[0] if len(queries) == 1 else _Query.disjunction_max_query(queries, tie)
