"""Sources of questions on sites with semantic search."""

from __future__ import annotations

from functools import partial

import pytest

from app.operations.asks import read_documents
from app.runtime import Runtime
from app.services.access.credentials import load_site_record
from app.services.asks.retrieval import Source, find_sources
from app.services.sites import get_site
from tests.callers import Tenant, page
from tests.responses import assert_ok
from tests.services.embedding.conftest import embedder, semantic_app, site  # noqa: F401
from tests.services.embedding.stub_embedder import StubEmbedder

QUESTION = "how do I get a refund for the old paper ticket"
PRICES = "Get the old paper ticket here. " + "Everyone pays. " * 60
COMPLAINTS = "Reimbursement of your money. " + "Write a letter. " * 60
SECTIONS = [
    {"title": "Prices", "level": 2, "anchor": "prices", "start": 0},
    {"title": "Complaints", "level": 2, "anchor": "complaints", "start": len(PRICES)},
]


@pytest.fixture
def shop(site: Tenant) -> Tenant:  # noqa: F811
    site.index(page("shop", title="Shop", content=PRICES + COMPLAINTS, sections=SECTIONS))
    site.app.extensions["runtime"].vectorizer.run()
    return site


def sources(tenant: Tenant, question: str = QUESTION) -> list[Source]:
    runtime: Runtime = tenant.app.extensions["runtime"]
    with runtime.database.read() as session:
        record = load_site_record(session, get_site(session, tenant.account_id, tenant.site_id))
    read = partial(read_documents, runtime.database)
    return find_sources(runtime.searcher, read, runtime.meaning, record, question, "", "")


def test_section_with_the_meaning_of_the_question_comes_first(shop: Tenant) -> None:
    assert sources(shop)[0].anchor == "complaints"
    assert_ok(shop.private.put(f"/sites/{shop.site_id}/search-settings", json={"semantic": False}))
    assert sources(shop)[0].anchor == "prices"


def test_words_choose_the_sources_while_the_embedder_is_away(shop: Tenant, embedder: StubEmbedder) -> None:  # noqa: F811
    embedder.is_away = True

    assert sources(shop)[0].anchor == "prices"


def test_words_choose_the_sources_of_a_question_in_an_unsupported_language(
    shop: Tenant, embedder: StubEmbedder  # noqa: F811
) -> None:  # fmt: skip
    embedder.languages = frozenset({"fi"})

    assert sources(shop)[0].anchor == "prices"


def test_vectors_of_an_earlier_text_are_ignored(shop: Tenant) -> None:
    shop.index(page("shop", title="Shop", content=PRICES + COMPLAINTS * 2, sections=SECTIONS))

    assert sources(shop)[0].anchor == "prices"


def test_page_that_only_has_the_meaning_of_a_question_is_no_source(shop: Tenant) -> None:
    shop.index(page("dogs", title="Dogs", content="Money."))
    shop.app.extensions["runtime"].vectorizer.run()

    assert sources(shop, "how can I get to the reimbursed zebras of a zoo") == []
