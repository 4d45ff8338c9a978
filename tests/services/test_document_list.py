"""Document lists repeat no document and miss no unchanged document, despite concurrent writes."""

from __future__ import annotations

import base64
import tracemalloc
from typing import Any, NamedTuple

import orjson
import pytest
from flask import Flask
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import ApiError
from app.models import Site
from app.runtime import Runtime
from app.services import document_list
from app.services.document_list import Cursor, Selection, encode, encode_into, read_page, select_documents, walk
from app.services.indexing.stored_documents import ListPosition
from app.services.search.budget import ResponseBudget
from tests.callers import Tenant, page
from tests.conftest import close_app, make_app, make_settings
from tests.services.test_syncs import Sender, documents


class Read(NamedTuple):
    """One page of a list."""

    documents: list[bytes]
    total: int
    next_cursor: str | None


def part_of(app: Flask) -> Runtime:
    part: Runtime = app.extensions["runtime"]
    return part


def read(
    app: Flask, tenant: Tenant, text: str | None = None, *, limit: int = 3, room: int = 10**6, **wanted: Any
) -> Read:
    part = part_of(app)
    with part.database.read() as session:
        site = session.get_one(Site, tenant.site_id)
    selection = select_documents(site, **wanted)
    cursor = None if text is None else Cursor.decode(text, selection)
    documents: list[bytes] = []
    take = encode_into(documents, ResponseBudget(room), None, may_end_early="ids" not in wanted)
    page = read_page(part.database, site, selection, cursor, limit, take)
    return Read(documents, page.total, page.next_cursor)


def ids(page: Read) -> list[str]:
    return [orjson.loads(document)["id"] for document in page.documents]


def test_document_list_is_sorted_by_latest_change_and_continues_at_the_cursor(app: Flask, tenant: Tenant) -> None:
    for number in range(7):
        tenant.index(page(number))
    tenant.index(page(2))

    first = read(app, tenant)
    second = read(app, tenant, first.next_cursor)
    third = read(app, tenant, second.next_cursor)

    assert [ids(first), ids(second), ids(third)] == [
        ["page-2", "page-6", "page-5"], ["page-4", "page-3", "page-1"], ["page-0"],
    ]  # fmt: skip
    assert [first.total, second.total, third.total] == [7, 7, 7]
    assert third.next_cursor is None


def test_documents_of_one_batch_are_listed_across_pages(app: Flask, tenant: Tenant) -> None:
    tenant.index(*map(page, range(7)))

    first = read(app, tenant)
    rest = read(app, tenant, first.next_cursor, limit=100)

    assert sorted(ids(first) + ids(rest)) == [f"page-{number}" for number in range(7)]
    assert rest.next_cursor is None


def test_exactly_full_last_page_has_no_next_cursor(app: Flask, tenant: Tenant) -> None:
    tenant.index(*map(page, range(3)))

    assert read(app, tenant).next_cursor is None


def test_filtered_list_counts_all_matches_and_continues_with_the_filter(app: Flask, tenant: Tenant) -> None:
    tenant.index(*(page(number, size=number) for number in range(10)))

    first = read(app, tenant, filters="size >= 4")
    second = read(app, tenant, first.next_cursor, filters=" size >= 4 ")

    assert sorted(ids(first) + ids(second)) == [f"page-{number}" for number in range(4, 10)]
    assert (first.total, second.total, second.next_cursor) == (6, 6, None)


def test_page_ends_early_at_the_size_limit(app: Flask, tenant: Tenant) -> None:
    tenant.index(*(page(number, content="x" * 1_000) for number in range(3)))

    first = read(app, tenant, room=2_500)
    assert len(first.documents) == 2
    assert len(read(app, tenant, first.next_cursor, room=2_500).documents) == 1
    with pytest.raises(ApiError) as too_large:
        read(app, tenant, room=900)
    assert too_large.value.code == "answer_too_large"
    with pytest.raises(ApiError):
        read(app, tenant, ids=["page-0", "page-1", "page-2"], room=2_500)
    assert len(read(app, tenant, ids=["page-0", "page-1"], room=2_500).documents) == 2


def cursor_text(content: Any) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(content)).decode().rstrip("=")


DIGEST = document_list._digest(Selection(1))


@pytest.mark.parametrize("text", [
    "x", "%%%", "ä", "AAAA", "=", cursor_text(5), cursor_text({}), cursor_text([]), cursor_text([DIGEST, 1, 2]),
    cursor_text([DIGEST, "1", 2, "a"]), cursor_text([DIGEST, 1, -1, "a"]), cursor_text([DIGEST, 1, 2**63, "a"]),
    cursor_text([DIGEST, 1, 2, 5]), cursor_text([DIGEST, 1, 2, "a\x00"]), cursor_text([DIGEST, 1, 2, "a" * 513]),
    cursor_text(["other", 1, 2, "a"]), cursor_text([None, 1, 2, "a"]), cursor_text([DIGEST, 1.5, 2, "a"]),
    cursor_text([DIGEST, True, 2, "a", 1]), base64.urlsafe_b64encode(b"\xff\xfe").decode(),
])  # fmt: skip
def test_malformed_cursor_is_rejected(text: str) -> None:
    with pytest.raises(ApiError) as rejected:
        Cursor.decode(text, Selection(1))

    assert rejected.value.status == 400
    assert rejected.value.details[0].field == "cursor"


def test_cursor_is_valid_only_for_its_own_list() -> None:
    cursor = Cursor(5, ListPosition(7, "päge\n-1"))
    for selection in (Selection(1), Selection(1, "shop"), Selection(1, None, None, "a = 1")):
        assert Cursor.decode(cursor.encode(selection), selection) == cursor
    with pytest.raises(ApiError):
        Cursor.decode(cursor.encode(Selection(1)), Selection(2))


def test_document_always_includes_its_id_source_and_update_time(app: Flask, tenant: Tenant) -> None:
    tenant.index(page(1))
    (document,) = walk(part_of(app).database, Selection(tenant.site_id))

    assert list(orjson.loads(encode(document, frozenset({"id", "nothing"})))) == ["id", "_source", "_updated_at"]
    assert {**page(1)}.items() <= orjson.loads(encode(document)).items()


changes = st.lists(st.tuples(st.sampled_from(["put", "remove", "sync"]), st.sets(st.integers(0, 19))), max_size=4)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(changes, min_size=2, max_size=8), st.integers(1, 7), st.booleans())
def test_writes_between_pages_neither_repeat_nor_lose_documents(
    tmp_path_factory: pytest.TempPathFactory, between: list[Any], limit: int, filtered: bool
) -> None:
    app, tenant, sender = installation(tmp_path_factory)
    sender.part.writer.remove_all(
        sender.account_id, sender.site_id, [[f"page-{number}" for number in range(20)]], up_to=2**62
    )
    for start in range(0, 20, 5):
        sender.put(range(start, start + 5))
    wanted = {"filters": "content EXISTS"} if filtered else {}
    touched: set[int] = set()
    seen: list[str] = []
    cursor: str | None = None
    while True:
        found = read(app, tenant, cursor, limit=limit, **wanted)
        seen += ids(found)
        assert found.total == 20
        cursor = found.next_cursor
        if cursor is None:
            break
        for what, numbers in between.pop(0) if between else []:
            touched |= numbers
            chosen = sorted(numbers)
            if not chosen:
                continue
            if what == "put":
                sender.put(chosen)
            elif what == "remove":
                sender.part.writer.remove_ids(sender.account_id, sender.site_id, [f"page-{n}" for n in chosen])
            else:
                sync_id = sender.begin(replace=True)
                sender.put(chosen, sync_id=sync_id)

    assert len(seen) == len(set(seen))
    assert {f"page-{number}" for number in range(20) if number not in touched} <= set(seen)


_installations: list[tuple[Flask, Tenant, Sender]] = []


def installation(factory: pytest.TempPathFactory) -> tuple[Flask, Tenant, Sender]:
    """Return one installation shared by all examples."""
    from tests.callers import register_tenant

    if not _installations:
        app = make_app(make_settings(factory.mktemp("lists"), default_plan="enterprise"))
        tenant = register_tenant(app, "ann@example.com")
        _installations.append((app, tenant, Sender(part_of(app), tenant)))
    return _installations[0]


@pytest.fixture(scope="module", autouse=True)
def _close_installation() -> Any:
    yield
    while _installations:
        close_app(_installations.pop()[0])


def test_streaming_large_documents_uses_bounded_memory(app: Flask, tenant: Tenant) -> None:
    sender = Sender(part_of(app), tenant)
    megabyte = "x" * 1_000_000
    for number in range(0, 60, 10):
        part_of(app).writer.put(
            sender.account_id, sender.limits, sender.site_id, documents(range(number, number + 10), content=megabyte)
        )
    count = 0
    tracemalloc.start()
    try:
        for document in walk(part_of(app).database, Selection(tenant.site_id)):
            count += len(document.body) > 1_000_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert count == 60
    assert peak < 20_000_000
