"""Building an index beside the one in use."""

from __future__ import annotations

from flask import Flask

from tests.callers import Tenant, page


def test_site_deleted_during_a_rebuild_leaves_no_index(app: Flask, tenant: Tenant) -> None:
    part = app.extensions["runtime"]
    tenant.index(page(1), page(2))
    assert len(part.engines.default.list_indexes()) == 1

    def delete_site(_: int) -> None:
        assert tenant.browser.delete(f"/sites/{tenant.site_id}?purge=true").status_code == 200

    part.rebuilder.rebuild(tenant.site_id, progress=delete_site)

    app.extensions["jobs"].run_all()
    assert part.engines.default.list_indexes() == []


def test_rebuild_indexes_every_document_in_a_new_index(app: Flask, tenant: Tenant) -> None:
    part = app.extensions["runtime"]
    tenant.index(page(1), page(2))
    before = part.engines.default.list_indexes()
    counts: list[int] = []

    part.rebuilder.rebuild(tenant.site_id, progress=counts.append)

    assert sum(counts) == 2
    assert len(set(part.engines.default.list_indexes()) - set(before)) == 1
    assert sorted(tenant.found_ids("page")) == ["page-1", "page-2"]
