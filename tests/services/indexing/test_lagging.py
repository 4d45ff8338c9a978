"""Sites whose index lacks changes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from flask import Flask

from app.clock import now
from app.models import Site
from app.services.indexing.site_indexes import find_lagging, lagging_since, lagging_sites
from backends.errors import BackendUnavailable
from tests.callers import Tenant, page, register_tenant


def test_complete_indexes_are_not_reported_as_lagging(app: Flask, tenant: Tenant) -> None:
    tenant.index(page(1))

    with app.extensions["runtime"].database.read() as session:
        assert list(lagging_sites(session)) == []
        assert find_lagging(session) == []
        assert lagging_since(session, session.get_one(Site, tenant.site_id)) is None


def test_lagging_sites_are_listed_with_their_oldest_change_longest_waiting_first(
    app: Flask, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = app.extensions["runtime"]
    other = register_tenant(app, "eve@example.com")

    def refuse(*_: Any) -> None:
        raise BackendUnavailable("too slow")

    monkeypatch.setattr(part.engines.default, "upsert", refuse)
    began = now().replace(microsecond=0)
    for minutes, site in ((0, other), (1, tenant), (2, other)):
        with time_machine.travel(began + timedelta(minutes=minutes), tick=False):
            sent = site.private.post("/api/v1/index/bulk", json={"documents": [page(minutes)]})
            assert sent.status_code == 503

    with part.database.read() as session:
        found = find_lagging(session)
        assert [each.id for each in found] == [other.site_id, tenant.site_id]
        assert [each.since for each in found] == [began, began + timedelta(minutes=1)]
        assert {each.error for each in found} == {"too slow"}
        assert lagging_since(session, session.get_one(Site, other.site_id)) == began
        assert {site_id for site_id, _ in lagging_sites(session)} == {other.site_id, tenant.site_id}
