"""Chunks of a document for its vector."""

from __future__ import annotations

from app.services.embedding.vectorizer import CHUNK_CHARACTERS, MAX_CHUNKS, chunks_of


def test_chunks_are_limited_and_each_begins_with_the_title() -> None:
    words = "word " * 1000

    chunks = chunks_of({"title": "Title", "content": words})

    assert len(chunks) == MAX_CHUNKS == 3
    assert all(chunk.startswith("Title\nword word") for chunk in chunks)
    assert all(len(chunk) <= CHUNK_CHARACTERS + len("Title\n") for chunk in chunks)
    assert CHUNK_CHARACTERS == 900


def test_short_documents_have_one_chunk_and_documents_without_text_only_the_title() -> None:
    assert chunks_of({"title": "Title", "content": " Text. "}) == ["Title\nText."]
    assert chunks_of({"title": "Title", "excerpt": "Short."}) == ["Title\nShort."]
    assert chunks_of({"title": "Title"}) == ["Title"]


def test_text_without_spaces_is_split_at_the_chunk_limit() -> None:
    assert [len(chunk) for chunk in chunks_of({"title": "T", "content": "字" * 2000})] == [902, 902, 202]
