"""Engines declare their support of each attribute of a search, and reject searches that they cannot run."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest

from backends.base import SearchBackend
from backends.embedded.backend import TantivyBackend
from backends.errors import BackendRejected
from backends.filters import OneOf
from backends.meilisearch.backend import MeilisearchBackend
from backends.query import Boost, Recency, SearchQuery, SearchSettings, SortKey
from backends.support import EngineSupport, Situation, check_support, declare, everywhere, except_with, nowhere
from backends.typesense.backend import TypesenseBackend
from schemas.search import SearchQuerySchema

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
ENGINES = (TantivyBackend, TypesenseBackend, MeilisearchBackend)
ATTRIBUTES = {each.name for each in fields(SearchQuery)}
SITUATIONS: dict[Situation, dict[str, Any]] = {
    "sort": {"sort": (SortKey("title"),)},
    "pins": {"settings": SearchSettings(pinned={"harbor": ("a",)})},
    "boosts": {"settings": SearchSettings(boosts=(Boost(1, OneOf("author", ("ann",))),))},
    "rank_field": {"settings": SearchSettings(rank_field="rank")},
    "recency": {"settings": SearchSettings(recency=Recency("date", 30))},
    "distinct": {"settings": SearchSettings(distinct="series")},
}


def support_with(**entries: Any) -> EngineSupport:
    return declare(**{**dict.fromkeys(ATTRIBUTES, everywhere("honored")), **entries})


@pytest.mark.parametrize("engine", ENGINES)
def test_each_engine_declares_every_attribute_of_a_search(engine: type[SearchBackend]) -> None:
    assert set(engine.support) == ATTRIBUTES
    assert all(each.how for each in engine.support.values())


@pytest.mark.parametrize("missing", sorted(ATTRIBUTES))
def test_declaration_without_an_attribute_is_rejected_by_name(missing: str) -> None:
    with pytest.raises(TypeError, match=rf"see: {missing}$"):
        declare(**{name: everywhere("honored") for name in ATTRIBUTES - {missing}})


def test_declaration_of_an_unknown_attribute_is_rejected_by_name() -> None:
    with pytest.raises(TypeError, match=r"see: no_attribute$"):
        support_with(no_attribute=everywhere("honored"))


def test_exceptions_must_name_a_situation() -> None:
    assert {"always", *SITUATIONS} == set(get_args(Situation))
    with pytest.raises(TypeError):
        except_with("honored")
    with pytest.raises(TypeError):
        except_with("honored", facets="No.")


def test_unsupported_attribute_is_rejected_only_where_a_search_uses_it() -> None:
    support = support_with(explain=nowhere("This engine cannot explain hits."))

    check_support(SearchQuery("harbor"), support)
    with pytest.raises(BackendRejected, match="This engine cannot explain hits") as caught:
        check_support(SearchQuery("harbor", explain=True), support)
    assert caught.value.parameter == "explain"


@pytest.mark.parametrize("situation", SITUATIONS)
def test_attribute_is_rejected_only_in_its_declared_situation(situation: Situation) -> None:
    support = support_with(all_words=except_with("honored", **{situation: f"Not with {situation}."}))
    other = next(each for each in SITUATIONS if each != situation)

    check_support(SearchQuery("harbor", all_words=True), support)
    check_support(SearchQuery("harbor", **SITUATIONS[situation]), support)
    check_support(SearchQuery("harbor", all_words=True, **SITUATIONS[other]), support)
    with pytest.raises(BackendRejected, match=f"Not with {situation}"):
        check_support(SearchQuery("harbor", all_words=True, **SITUATIONS[situation]), support)


def test_distinct_situation_follows_the_query_before_the_settings() -> None:
    support = support_with(all_words=except_with("honored", distinct="Not with distinct."))
    settings = SearchSettings(distinct="series")

    check_support(SearchQuery("harbor", all_words=True, distinct="", settings=settings), support)
    with pytest.raises(BackendRejected, match="Not with distinct"):
        check_support(SearchQuery("harbor", all_words=True, distinct="author"), support)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_limit_of_an_engine_is_documented(engine: type[SearchBackend]) -> None:
    documented = " ".join((DOCS / "engines.md").read_text().split())

    assert [message for _, _, message in engine.support.limited if message not in documented] == []


def test_every_search_parameter_has_a_row_in_the_search_documentation() -> None:
    text = (DOCS / "search.md").read_text()

    parameters = [field.data_key or name for name, field in SearchQuerySchema().fields.items()]

    assert [name for name in parameters if f"\n| `{name}` | " not in text] == []
