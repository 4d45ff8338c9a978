"""A search succeeds even if its event cannot be recorded."""

from __future__ import annotations

import logging

import pytest
from flask import Flask

from app.services.analytics.events import LOST_EVENTS, EventJournalUnavailable
from tests.callers import Tenant, page
from tests.responses import assert_error


def lost() -> float:
    """Return the value of the counter of lost events."""
    return float(LOST_EVENTS._value.get())


def test_search_whose_event_cannot_be_recorded_succeeds_and_is_counted_and_logged(
    app: Flask, tenant: Tenant, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant.index(page(1))
    before = lost()

    def full(event: object) -> None:
        raise EventJournalUnavailable("no space left on device")

    monkeypatch.setattr(app.extensions["runtime"].events, "record", full)
    with caplog.at_level(logging.ERROR, logger="app.services.analytics.events"):
        for _ in range(3):
            assert tenant.found_ids("page") == ["page-1"]
    logged = [record.getMessage() for record in caplog.records if record.name == "app.services.analytics.events"]

    assert lost() == before + 3
    assert logged == ["search events: 1 events could not be recorded: no space left on device"], "one line per minute"
    entry = {"query": "page", "results_count": 1}
    caplog.clear()
    body = assert_error(tenant.search.post("/api/v1/search-log", json=entry), 503, "database_unavailable")
    assert body["message"] == "The event journal is unavailable; try again."
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR] == [
        "the event journal is unavailable: no space left on device"
    ]
