"""Vectors are kept up to date with documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import select, update

from app.clock import Backoff
from app.models import DocumentVector, Site
from app.services.embedding import stored_vectors
from app.services.embedding import vectorizer as vectorizer_module
from app.services.embedding.embedder import EmbedderUnavailable
from app.services.embedding.stored_vectors import store_vectors
from app.services.embedding.vectorizer import BATCH_DOCUMENTS, PROBE, Vectorizer
from app.services.engines import purge_site
from tests.callers import Tenant, page
from tests.conftest import register_tenant
from tests.responses import assert_ok
from tests.services.embedding.stub_embedder import StubEmbedder


def run(site: Tenant, embedder: StubEmbedder | None = None) -> int:
    runtime = site.app.extensions["runtime"]
    vectorizer = runtime.vectorizer if embedder is None else Vectorizer(runtime.database, runtime.locks, embedder)
    made: int = vectorizer.run()
    return made


def stored(site: Tenant) -> dict[str, tuple[int, str, int]]:
    """Return the revision, model, and vector length of each document."""
    with site.app.extensions["runtime"].database.read() as session:
        rows = session.scalars(select(DocumentVector).where(DocumentVector.site_id == site.site_id)).all()
    return {row.id: (row.revision, row.model, len(row.vector)) for row in rows}


def progress(site: Tenant) -> tuple[int, int, str]:
    with site.app.extensions["runtime"].database.read() as session:
        row = session.get(Site, site.site_id)
        assert row is not None
        return row.revision, row.vectors_revision, row.vectors_model


def switch(site: Tenant, *, on: bool) -> None:
    assert_ok(site.private.put(f"/sites/{site.site_id}/search-settings", json={"semantic": on}))


def test_each_document_is_embedded_exactly_once(site: Tenant, embedder: StubEmbedder) -> None:
    site.index(*(page(number) for number in range(BATCH_DOCUMENTS + 3)))

    assert run(site) == BATCH_DOCUMENTS + 3
    assert run(site) == 0

    assert len(stored(site)) == BATCH_DOCUMENTS + 3
    assert len(embedder.asked) == BATCH_DOCUMENTS + 3
    revision, reached, model = progress(site)
    assert (reached, model) == (revision, "chunks:stub:4")


def test_changed_document_gets_a_new_vector_and_deleted_document_loses_its_vector(
    site: Tenant, embedder: StubEmbedder
) -> None:
    site.index(page(1), page(2), page(3))
    run(site)
    before = stored(site)

    site.index(page(2, title="About dogs"))
    assert_ok(site.private.post("/api/v1/documents/delete", json={"ids": ["page-3"]}))
    embedder.asked.clear()

    assert run(site) == 1
    assert [text.split("\n")[0] for text in embedder.asked] == ["About dogs"]
    assert stored(site).keys() == {"page-1", "page-2"}
    assert stored(site)["page-1"] == before["page-1"]
    assert stored(site)["page-2"][0] > before["page-2"][0]


def test_each_chunk_of_a_long_document_has_a_vector_up_to_the_maximum_size(
    site: Tenant, embedder: StubEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_vectors, "MAX_BYTES", 12)
    site.index(page(1, content="word " * 300), page(2, content="word " * 5000))

    run(site)

    assert {id: length // 4 for id, (_, _, length) in stored(site).items()} == {"page-1": 2, "page-2": 3}
    embedder.spare = 100
    site.find("how do I get a refund for the page")
    run(site)
    assert {length // 104 for _, _, length in stored(site).values()} == {1}


def test_batch_of_long_documents_has_a_limited_number_of_chunks(
    site: Tenant, embedder: StubEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    embed = embedder.embed_documents

    def count(texts: Sequence[str], timeout_seconds: float) -> Any:
        counts.append(len([text for text in texts if text != PROBE]))
        return embed(texts, timeout_seconds)

    monkeypatch.setattr(embedder, "embed_documents", count)
    site.index(*(page(number, content="word " * 400 * number) for number in range(1, 10)))

    assert run(site) == 9
    assert [count for count in counts if count] == [50, 54]
    assert run(site) == 0


def test_single_vectors_of_documents_are_used_until_they_are_replaced(site: Tenant, embedder: StubEmbedder) -> None:
    site.index(page(1, title="Ticket", content="Get it, get it."), page(2, title="Reimbursement", content="Money."))
    run(site)
    with site.app.extensions["runtime"].database.write() as session:
        session.execute(update(DocumentVector).values(model="stub:4"))
        session.execute(update(Site).values(vectors_model="stub:4"))
    vectorizer = site.app.extensions["runtime"].vectorizer
    query = "how do I get the reimbursement of my money"

    assert vectorizer.count_missing(site.site_id) == 0
    assert site.find(query)["hits"][0]["id"] == "page-2"

    assert run(site) == 2
    assert {model for _, model, _ in stored(site).values()} == {"chunks:stub:4"}
    assert site.find(query)["hits"][0]["id"] == "page-2"


def test_another_model_recomputes_all_vectors(site: Tenant) -> None:
    site.index(page(1), page(2))
    run(site)

    assert run(site, StubEmbedder("other")) == 2

    assert {model for _, model, _ in stored(site).values()} == {"chunks:other:4"}
    assert progress(site)[2] == "chunks:other:4"


def test_dimension_change_seen_by_a_search_recomputes_all_vectors(site: Tenant, embedder: StubEmbedder) -> None:
    site.index(page(1), page(2))
    run(site)
    embedder.spare = 2

    site.find("how do I get a refund for the page")
    assert run(site) == 2
    assert {(model, length) for _, model, length in stored(site).values()} == {("chunks:stub:6", 6)}
    assert progress(site)[2] == "chunks:stub:6"
    assert run(site) == 0


def test_dimension_change_seen_while_embedding_recomputes_all_vectors(site: Tenant, embedder: StubEmbedder) -> None:
    site.index(page(1), page(2))
    run(site)
    embedder.spare = 2
    site.index(page(3))

    run(site)
    run(site)

    assert {(model, length) for _, model, length in stored(site).values()} == {("chunks:stub:6", 6)}
    assert len(stored(site)) == 3


def test_restarted_process_does_not_recompute_vectors(site: Tenant) -> None:
    site.index(page(1), page(2))
    run(site)
    started = StubEmbedder()

    assert run(site, started) == 0
    site.index(page(3))
    assert run(site, started) == 1


def test_disabling_semantic_search_deletes_the_vectors_of_a_site(site: Tenant) -> None:
    site.index(page(1), page(2))
    run(site)

    switch(site, on=False)
    run(site)
    assert (stored(site), progress(site)[1:]) == ({}, (0, ""))

    site.index(page(3))
    assert run(site) == 0
    switch(site, on=True)
    assert run(site) == 3


def test_vectors_stored_before_an_embedder_outage_are_preserved(site: Tenant, embedder: StubEmbedder) -> None:
    site.index(*(page(number) for number in range(BATCH_DOCUMENTS)), page(99, title="zzz"))
    site.index(page(100))
    embedder.rejected = "zzz"

    assert run(site) == BATCH_DOCUMENTS + 2
    assert stored(site)["page-99"][2] == 0

    embedder.is_away = True
    site.index(page(101))
    with pytest.raises(EmbedderUnavailable):
        run(site)
    assert "page-101" not in stored(site)

    embedder.is_away = False
    assert run(site) == 1


def test_document_changed_during_embedding_is_embedded_again(site: Tenant, embedder: StubEmbedder) -> None:
    site.index(page(1, title="First"))

    class Slow(StubEmbedder):
        def embed_documents(self, texts, timeout_seconds):  # type: ignore[no-untyped-def]
            if texts[0].startswith("First"):
                site.index(page(1, title="Second"))
            return super().embed_documents(texts, timeout_seconds)

    slow = Slow()
    run(site, slow)
    run(site, slow)

    assert [text.split("\n")[0] for text in slow.asked] == ["First", "Second"]
    revision, reached, _ = progress(site)
    assert revision == reached == stored(site)["page-1"][0]


def test_purging_a_site_deletes_its_vectors(site: Tenant) -> None:
    site.index(page(1), page(2))
    run(site)
    runtime = site.app.extensions["runtime"]

    purge_site(runtime.database, runtime.counters, site.account_id, site.site_id)

    assert stored(site) == {}


class Meddler(StubEmbedder):
    """An embedder that runs a callback on its first call with documents."""

    def __init__(self, meddle: Callable[[], None]):
        super().__init__()
        self._meddle: list[Callable[[], None]] = [meddle]

    def embed_documents(self, texts: Sequence[str], timeout_seconds: float) -> Any:
        if self._meddle:
            self._meddle.pop()()
        return super().embed_documents(texts, timeout_seconds)


@pytest.fixture
def other(site: Tenant) -> Tenant:
    """Another site with semantic search, of another account, with a later turn."""
    tenant = register_tenant(site.app, "bob@example.com")
    switch(tenant, on=True)
    return tenant


def test_document_that_the_embedder_fails_on_does_not_delay_other_sites(
    site: Tenant, other: Tenant, embedder: StubEmbedder
) -> None:
    site.index(page(1, title="zzz"))
    other.index(*(page(number) for number in range(BATCH_DOCUMENTS + 1)))
    embedder.failing = "zzz"

    moment = 0.0
    runtime = site.app.extensions["runtime"]
    vectorizer = Vectorizer(runtime.database, runtime.locks, embedder, Backoff(lambda: moment))
    vectorizer.run()
    assert (len(stored(site)), len(stored(other))) == (0, BATCH_DOCUMENTS + 1)

    embedder.failing = ""
    assert vectorizer.run() == 0, "the request must wait"
    moment = 2.0
    assert vectorizer.run() == 1


def test_sites_with_only_rejected_documents_do_not_delay_other_sites(
    site: Tenant, other: Tenant, embedder: StubEmbedder
) -> None:
    third = register_tenant(site.app, "cy@example.com")
    switch(third, on=True)
    for rejected in (site, other):
        rejected.index(*(page(number, title="zzz") for number in range(BATCH_DOCUMENTS + 1)))
    third.index(page(1))
    embedder.rejected = "zzz"

    run(site)

    assert {length for _, _, length in (stored(site) | stored(other)).values()} == {0}
    assert stored(third)["page-1"][2] == 4
    assert run(site) == 0


def test_next_run_starts_with_the_site_after_the_last_one(site: Tenant, other: Tenant) -> None:
    class Tired(StubEmbedder):
        """Responds once in each run, and is unavailable afterwards."""

        answers = 0

        def embed_documents(self, texts: Sequence[str], timeout_seconds: float) -> Any:
            self.answers -= 1
            self.is_away = self.answers < 0
            return super().embed_documents(texts, timeout_seconds)

    embedder = Tired()
    embedder.dimension = 4
    runtime = site.app.extensions["runtime"]
    vectorizer = Vectorizer(runtime.database, runtime.locks, embedder)
    site.index(*(page(number) for number in range(5 * BATCH_DOCUMENTS)))
    other.index(*(page(number) for number in range(5 * BATCH_DOCUMENTS)))

    for _ in range(4):
        embedder.answers = 1
        with pytest.raises(EmbedderUnavailable):
            vectorizer.run()

    assert [len(stored(one)) for one in (site, other)] == [2 * BATCH_DOCUMENTS] * 2


def test_single_rejected_document_is_not_embedded_again(site: Tenant, embedder: StubEmbedder) -> None:
    site.index(page(1, title="zzz"))
    embedder.rejected = "zzz"

    run(site)

    assert stored(site)["page-1"][2] == 0
    assert run(site) == 0


def test_embedder_that_rejects_everything_is_retried(site: Tenant, embedder: StubEmbedder) -> None:
    site.index(page(1), page(2))
    embedder.is_misconfigured = True

    with pytest.raises(EmbedderUnavailable):
        run(site)
    assert stored(site) == {}

    embedder.is_misconfigured = False
    assert run(site) == 2


def test_site_changed_during_a_run_is_embedded_in_the_same_run(site: Tenant, other: Tenant) -> None:
    site.index(page(1))

    assert run(site, Meddler(lambda: other.index(page(1), page(2)))) == 3

    assert stored(other).keys() == {"page-1", "page-2"}


def test_site_paused_during_a_run_is_no_longer_embedded(site: Tenant) -> None:
    site.index(*(page(number) for number in range(2 * BATCH_DOCUMENTS)))

    def pause() -> None:
        with site.app.extensions["runtime"].database.write() as session:
            session.execute(update(Site).where(Site.id == site.site_id).values(active=False))

    assert run(site, Meddler(pause)) == BATCH_DOCUMENTS


@pytest.mark.parametrize("is_killed", [False, True])
def test_vectors_enabled_again_during_their_removal_are_recomputed(
    site: Tenant, monkeypatch: pytest.MonkeyPatch, is_killed: bool
) -> None:
    site.index(page(1), page(2), page(3))
    run(site)
    switch(site, on=False)
    remove = vectorizer_module.remove_vectors

    def remove_and_wish(session: Any, site_id: int, limit: int) -> bool:
        left = remove(session, site_id, 1)
        session.execute(update(Site).where(Site.id == site_id).values(search_settings={"semantic": True}))
        monkeypatch.setattr(vectorizer_module, "remove_vectors", remove)
        if is_killed:
            session.commit()
            raise KeyboardInterrupt
        return left

    monkeypatch.setattr(vectorizer_module, "remove_vectors", remove_and_wish)
    if is_killed:
        with pytest.raises(KeyboardInterrupt):
            run(site)
        switch(site, on=True)
    else:
        run(site)
    run(site)

    assert stored(site).keys() == {"page-1", "page-2", "page-3"}


def test_storing_vectors_of_no_documents_succeeds(site: Tenant) -> None:
    with site.app.extensions["runtime"].database.write() as session:
        store_vectors(session, site.site_id, "stub", {})

    assert stored(site) == {}


def test_repeated_previews_write_the_enabled_time_once(site: Tenant) -> None:
    runtime = site.app.extensions["runtime"]

    def wanted_until() -> Any:
        with runtime.database.read() as session:
            return session.scalar(select(Site.vectors_wanted_until).where(Site.id == site.site_id))

    runtime.vectorizer.enable_for_preview(site.site_id)
    first = wanted_until()
    runtime.vectorizer.enable_for_preview(site.site_id)

    assert first is not None
    assert wanted_until() == first
