"""Chunks of a document for its vectors."""

from __future__ import annotations

from app.services.embedding.chunks import CHUNK_CHARACTERS, MAX_CHUNKS, chunks_of, spans_of


def test_chunks_have_a_size_limit_and_begin_with_the_title() -> None:
    words = "word " * 20_000

    chunks = chunks_of({"title": "Title", "content": words})

    assert len(chunks) == MAX_CHUNKS == 32
    assert all(chunk.startswith("Title\nword word") for chunk in chunks)
    assert all(len(chunk) <= CHUNK_CHARACTERS + len("Title\n") for chunk in chunks)
    assert CHUNK_CHARACTERS == 900


def test_models_that_consider_fewer_tokens_get_shorter_chunks_and_titles() -> None:
    chunks = chunks_of({"title": "t" * 400, "content": "word " * 1000}, 450, 5)

    assert [len(chunk) for chunk in chunks] == [150 + 1 + 449] * 5


def test_short_documents_have_one_chunk_and_documents_without_text_only_the_title() -> None:
    assert chunks_of({"title": "Title", "content": " Text. "}) == ["Title\nText."]
    assert chunks_of({"title": "Title", "excerpt": "Short."}) == ["Title\nShort."]
    assert chunks_of({"title": "Title", "content": " "}) == ["Title"]
    assert chunks_of({"title": "Title"}) == ["Title"]


def test_text_without_spaces_is_split_at_the_chunk_limit() -> None:
    assert [len(chunk) for chunk in chunks_of({"title": "T", "content": "字" * 2000})] == [902, 902, 202]


def test_chunks_end_with_sections_and_short_sections_share_a_chunk() -> None:
    lengths = [100, 300, 2000, 400, 600]
    texts = [f"{number}{' word' * 400}"[: length - 1] + "\n" for number, length in enumerate(lengths)]
    content = "".join(texts)
    sections = [
        {"anchor": f"s{number}", "title": str(number), "level": 2, "start": sum(lengths[:number])}
        for number in range(1, 5)
    ]
    document = {"title": "T", "content": content, "sections": sections}

    spans = spans_of(document)

    # The third section is split, and the fourth follows its last part.
    assert spans == [(0, 399), (400, 1296), (1297, 2196), (2197, 2799), (2800, 3399)]
    # Nothing but spaces is lost.
    assert " ".join(content[start:end] for start, end in spans).split() == content.split()
