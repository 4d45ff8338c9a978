"""The index schema has a version, and indexes of earlier versions remain readable.

``versions/N.zip`` is an index written by a release with schema version N. After a new schema version,
RECORD_INDEX=1 makes this module write its index; add its fingerprint to :data:`FINGERPRINTS`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import orjson
import pytest

from backends.base import Document
from backends.embedded.backend import TantivyBackend
from backends.embedded.index import disk, state
from backends.embedded.index.documents import to_tantivy
from backends.embedded.index.generations import read_meta
from backends.embedded.index.schema import OLDEST_READABLE_VERSION, SCHEMA_VERSION
from backends.errors import BackendUnavailable, IndexNotFound
from backends.query import Boost, FieldKind, SearchQuery, SearchSettings, SortKey
from backends.registry import create_backend
from backends.sections import Section
from tests.backends.embedded.on_disk import NAME, backend_fixture, generation_of, url_fixture  # noqa: F401

VERSIONS = Path(__file__).parent / "versions"
FINGERPRINTS = {
    4: "3bc7df3c39dd63887ad082fb0dcdce84a055173ddfe9c39145ed048cb5b2b69d",
    5: "5c84cd50578c89c71f55793f9f5e77155980fe40ff705d26f9e39910e6070397",
    6: "f5b7d57499968ca7add2d9a18a6facca91757deaae1a0356a0f55f609929f662",
    7: "5409e75a17f00bc07d8842d25e86d7ebba29f11127eb52328ce5b4405a346742",
    8: "5409e75a17f00bc07d8842d25e86d7ebba29f11127eb52328ce5b4405a346742",
    9: "47ee7924f38159c0cc8d559282412ae5b7c896e7e139c1814583f07b30700d98",
}
"""Digest of each schema version. The samples lack what 8 changed: fractions, the numero sign, -0.0, dates with ``z``.

They also lack what 9 changed besides paths: digits of other scripts, emoji, and phone numbers.

If the fingerprint changes, raise ``SCHEMA_VERSION``.
"""

KINDS = {
    "price": frozenset({FieldKind.NUMBER}), "tags": frozenset({FieldKind.STRING_LIST}),
    "open": frozenset({FieldKind.BOOLEAN}), "empty": frozenset({FieldKind.STRING_LIST}),
}  # fmt: skip
SAMPLES = [
    Document("harbor", {"id": "harbor", "title": "Harbor cruises", "content": "We sailed to three islands.",
                        "url": "/harbor", "excerpt": "Sailing", "author": "Ada", "date": "2024-05-01",
                        "price": 12.5, "tags": ["sea", "Boat"], "open": True, "empty": []}, 1,
             (Section("islands", "Three islands", 2, 13),)),
    Document("hafen", {"id": "hafen", "title": "Über die Häfen", "content": "Die Schiffe fahren täglich hinaus.",
                       "url": "/häfen", "price": 7, "tags": []}, 2),
    Document("港", {"id": "港", "title": "東京の港", "content": "船は毎日出航します。", "url": "/港"}, 3),
    Document("cảng", {"id": "cảng", "title": "Cảng biển", "content": "Tàu thuyền đi mỗi ngày.", "url": "/cang"}, 4),
]  # fmt: skip


def fill(backend: TantivyBackend) -> None:
    """Write the samples in two commits, and write and delete another document."""
    backend.upsert(NAME, [*SAMPLES[:2], Document("gone", {**SAMPLES[0].fields, "id": "gone"}, 1)], KINDS)
    backend.upsert(NAME, SAMPLES[2:], KINDS)
    backend.delete(NAME, ["gone"])


def fingerprint(backend: TantivyBackend) -> str:
    """Return a digest of the columns and of the samples' values in them."""
    columns = read_meta(generation_of(backend))["schema"]
    numbers = {name: number for number, name in enumerate(KINDS)}
    terms = [repr(sorted(to_tantivy(document, numbers).to_dict().items())) for document in SAMPLES]
    return hashlib.sha256(orjson.dumps([columns, terms])).hexdigest()


def ids(backend: TantivyBackend, text: str) -> list[str]:
    return sorted(hit.id for hit in backend.search(NAME, SearchQuery(text)).hits)


def test_changed_schema_requires_a_new_schema_version(backend: TantivyBackend) -> None:
    fill(backend)
    assert FINGERPRINTS.get(SCHEMA_VERSION) == fingerprint(backend), (
        "The contents of indexes have changed: increase SCHEMA_VERSION in backends/embedded/index/schema.py, so that "
        "indexes are rebuilt, add the fingerprint here, and store an index of this version with RECORD_INDEX=1."
    )
    if os.environ.get("RECORD_INDEX"):
        backend.close()
        root = generation_of(backend).parents[1]
        shutil.rmtree(root / ".trash")
        shutil.make_archive(str(VERSIONS / str(SCHEMA_VERSION)), "zip", root)


@pytest.mark.parametrize("version", range(OLDEST_READABLE_VERSION, SCHEMA_VERSION + 1))
def test_index_of_an_earlier_release_can_be_searched_and_written(version: int, tmp_path: Path) -> None:
    shutil.unpack_archive(VERSIONS / f"{version}.zip", tmp_path)
    backend = create_backend(f"tantivy://{tmp_path}")

    assert backend.count(NAME) == 4
    assert ids(backend, "sailing") == ["harbor"]
    assert ids(backend, "schiff") == ["hafen"]
    assert ids(backend, "東京") == ["港"]
    assert ids(backend, "cảng") == ["cảng"]
    assert backend.find_titles(NAME, "harb", 5)[0].url == "/harbor"
    query = SearchQuery(
        "*", native_filter="price < 10 OR tags = boat", sort=(SortKey("price"),), facets=("tags",), kinds=KINDS
    )
    result = backend.search(NAME, query)
    assert [hit.id for hit in result.hits] == ["hafen", "harbor"]
    assert result.facets == {"tags": {"Boat": 1, "sea": 1}}

    quay = {"id": "quay", "title": "Quay", "content": "Tide tables", "url": "/q"}
    backend.upsert(NAME, [Document("quay", quay, 5, (Section("tides", "Tide tables", 2, 0),))], {})
    backend.delete(NAME, ["harbor"])
    assert ids(backend, "tide") == ["quay"]
    in_folder = SearchQuery("tide schiff", explain=True, settings=SearchSettings(boosts=(Boost(1, path="/*"),)))
    ranks = {hit.id: (hit.explanation or {})["rank"] for hit in backend.search(NAME, in_folder).hits}
    assert ranks == {"quay": 1, "hafen": 1}
    (hit,) = backend.search(NAME, SearchQuery("tide", sections=3)).hits
    assert [each.section.anchor for each in hit.sections or ()] == (["tides"] if version > 4 else [])
    assert ids(backend, "sailing") == []
    backend.close()


def test_index_of_the_previous_version_is_searchable_and_reported_as_outdated(
    backend: TantivyBackend, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(backend)
    backend.close()
    assert backend.outdated_indexes() == []
    for module in (disk, state):
        monkeypatch.setattr(module, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    upgraded = create_backend(url)

    assert upgraded.outdated_indexes() == [NAME]
    assert ids(upgraded, "sailing") == ["harbor"]
    upgraded.upsert(NAME, [Document("quay", {"id": "quay", "title": "Quay", "content": "", "url": "/q"}, 5)], {})
    assert upgraded.outdated_indexes() == [NAME]
    upgraded.close()


def test_unreadably_old_index_is_not_found_and_reported_as_outdated(
    backend: TantivyBackend, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(backend)
    backend.close()
    for module in (disk, state):
        monkeypatch.setattr(module, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    monkeypatch.setattr(state, "OLDEST_READABLE_VERSION", SCHEMA_VERSION + 1)
    upgraded = create_backend(url)

    assert upgraded.outdated_indexes() == [NAME]
    with pytest.raises(IndexNotFound):
        ids(upgraded, "sailing")


def test_previous_release_reports_a_newer_index_as_unavailable_not_missing(
    backend: TantivyBackend, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as later:
        for module in (disk, state):
            later.setattr(module, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
        backend.delete_index(NAME)
        backend.create_index(NAME)
    before = create_backend(url)

    with pytest.raises(BackendUnavailable, match="newer release"):
        before.count(NAME)
    assert before.outdated_indexes() == []
