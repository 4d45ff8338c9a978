"""The limit of distinct custom fields of a site, and when unused fields are forgotten."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from tests.callers import Tenant, page, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.responses import assert_error, assert_ok

MOST = 10


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Flask]:
    application = make_app(make_settings(tmp_path, max_site_fields=MOST))
    yield application
    close_app(application)


@pytest.fixture
def owner(app: Flask) -> Tenant:
    return register_tenant(app, "owner@example.com")


def having(number: int, *numbers: int, prefix: str = "f") -> dict[str, Any]:
    """Return a document with these custom fields."""
    return page(number, **{f"{prefix}{each}": f"value {each}" for each in numbers})


def send(owner: Tenant, *documents: dict[str, Any]) -> Any:
    return owner.private.post("/api/v1/index/bulk", json={"documents": list(documents)})


def test_batch_beyond_the_field_limit_is_rejected_as_a_whole_with_the_first_such_document(owner: Tenant) -> None:
    owner.index(having(1, *range(MOST - 1)))

    body = assert_error(
        send(owner, having(2, 0, 1), having(3, MOST), having(4, MOST, MOST + 1), having(5, MOST + 2)),
        400,
        "validation_failed",
    )

    (detail,) = body["details"]
    assert (detail["field"], detail["code"], detail["index"], detail["id"]) == (
        "documents[2]", "too_many_fields", 2, "page-4",
    )  # fmt: skip
    assert f"'f{MOST + 1}'" in body["message"]
    assert owner.found_ids("page") == ["page-1"]
    assert_error(owner.search.get(f"/v1/search?q=page&filters=f{MOST}=x"), 400, "invalid_filter")


def test_repeated_id_counts_as_its_last_version_in_the_field_limit(owner: Tenant) -> None:
    owner.index(having(1, *range(MOST, MOST + 5)), having(1, *range(MOST)))

    body = assert_error(send(owner, page(2), page(3), page(2, other="x")), 400, "validation_failed")

    assert body["details"][0]["field"] == "documents[2]"


def test_known_fields_are_accepted_in_new_documents_and_with_other_kinds(owner: Tenant) -> None:
    owner.index(having(1, *range(MOST)))

    owner.index(page(2, f0=5, f1=["a"]), having(3, *range(MOST)))

    assert sorted(owner.found_ids("page")) == ["page-1", "page-2", "page-3"]


def test_standard_fields_and_empty_values_do_not_count_towards_the_field_limit(owner: Tenant) -> None:
    owner.index(having(1, *range(MOST)))

    owner.index(page(2, author="Ann", date="2024-05-01", excerpt="Short", none=None, empty=[]))

    assert sorted(owner.found_ids("page")) == ["page-1", "page-2"]


def test_concurrent_writers_never_exceed_the_field_limit(app: Flask, owner: Tenant) -> None:
    owner.index(having(1, *range(MOST - 1)))

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda n: send(owner, having(n, n)).status_code, range(100, 108)))

    assert sorted(statuses) == [200, *[400] * 7]


def test_removing_the_last_document_forgets_all_fields(owner: Tenant) -> None:
    owner.index(having(1, *range(MOST)), page(2))
    owner.private.delete("/api/v1/index/destroy", json={"id": "page-1"})
    assert_error(send(owner, having(3, 1, prefix="g")), 400, "validation_failed")

    assert_ok(owner.private.delete("/api/v1/index/destroy", json={"id": "page-2"}))

    assert_error(owner.search.get("/v1/search?q=page&filters=f1=x"), 400, "invalid_filter")
    owner.index(having(3, *range(MOST), prefix="g"))
    assert owner.found_ids("page", filters=owner.equals("g1", "'value 1'"), sort="g2") == ["page-3"]


def test_rebuilding_the_index_forgets_unused_fields(app: Flask, owner: Tenant) -> None:
    owner.index(having(1, *range(MOST)), page(2, f0=5))
    owner.index(having(1, 0, 1))
    assert_error(send(owner, having(3, 1, prefix="g")), 400, "validation_failed")

    app.extensions["runtime"].rebuilder.rebuild(owner.site_id)

    assert_error(owner.search.get("/v1/search?q=page&filters=f2=x"), 400, "invalid_filter")
    found = owner.find("page", facets="*", sort="f0")
    assert {"f0", "f1"} == set(found["facetDistribution"]) - {"author", "date", "id"}
    assert [hit["id"] for hit in found["hits"]] == ["page-2", "page-1"]
    owner.index(having(3, *range(MOST - 2), prefix="g"))
    assert_error(send(owner, page(4, other="x")), 400, "validation_failed")


def test_fields_written_during_a_rebuild_count(app: Flask, owner: Tenant) -> None:
    owner.index(having(1, 0, 1, 2))

    def write(_: int) -> None:
        if owner.found_ids("page") == ["page-1"]:
            owner.index(having(2, 3, 4))

    app.extensions["runtime"].rebuilder.rebuild(owner.site_id, progress=write)

    assert owner.found_ids("page", filters=owner.equals("f4", "'value 4'"), sort="f3") == ["page-2"]
    assert_error(send(owner, having(3, *range(5, MOST + 1))), 400, "validation_failed")
    owner.index(having(3, *range(5, MOST)))


def test_fields_removed_during_a_rebuild_stay_forgotten(app: Flask, owner: Tenant) -> None:
    owner.index(having(1, *range(MOST)))

    def replace(_: int) -> None:
        if owner.found_ids("page") == ["page-1"]:
            owner.private.delete("/api/v1/index/destroy", json={"id": "page-1"})
            owner.index(having(2, 0, prefix="g"))

    app.extensions["runtime"].rebuilder.rebuild(owner.site_id, progress=replace)

    assert owner.found_ids("page") == ["page-2"]
    owner.index(having(3, *range(1, MOST), prefix="g"))


def test_import_skips_lines_beyond_the_field_limit(owner: Tenant, tmp_path: Path) -> None:
    file = tmp_path / "pages.jsonl"
    lines = [having(1, *range(MOST - 1)), having(2, 20, 21), {"id": "x"}, having(3, 20), having(4, 21), page(5)]
    file.write_text("\n".join(map(json.dumps, lines)))

    result = owner.app.test_cli_runner().invoke(
        args=["documents", "import", "--site", str(owner.site_id), str(file), "--json"]
    )

    answer = json.loads(result.output)
    assert (answer["imported"], [problem["line"] for problem in answer["problems"]]) == (3, [2, 3, 5])
    assert "'f21'" in answer["problems"][0]["problems"][0]
    assert sorted(owner.found_ids("page")) == ["page-1", "page-3", "page-5"]
