"""Every request is counted by endpoint and status."""

from __future__ import annotations

from flask import Flask

from tests.callers import ApiClient, Tenant, page
from tests.metrics.samples import Samples, scrape, value


def counted(samples: Samples, endpoint: str, status: str) -> float:
    return value(samples, "http_requests_total", endpoint=endpoint, method="GET", status=status)


def test_requests_are_counted_by_endpoint_and_status(app: Flask, tenant: Tenant) -> None:
    tenant.index(page(1))
    before = scrape(app)

    tenant.find("page")
    tenant.find("page")
    tenant.public.get("/v1/search?q=page")

    after = scrape(app)
    differences = [
        counted(after, "search.search", status) - counted(before, "search.search", status) for status in ("200", "403")
    ]
    assert differences == [2, 1]


def test_unknown_paths_and_methods_create_no_new_series(app: Flask) -> None:
    for number in range(3):
        ApiClient(app).call(f"METHOD{number}", f"/nowhere/{number}")

    told = str(scrape(app))

    assert "nowhere" not in told
    assert "METHOD0" not in told
