"""Counts of running and ended processes are reported, without keeping a file for each process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from app.metrics import show_processes
from app.plans import LIMIT_NAMES
from tests.callers import Tenant, page
from tests.metrics.samples import Samples, samples_of, scrape, value
from tests.patience import PATIENCE_SECONDS

COUNT = """
import sys
from app.metrics import show_processes
from app.plans import QUOTA_REJECTIONS
from app.services.engines import ENGINE_SECONDS
QUOTA_REJECTIONS.labels("keys").inc(int(sys.argv[1]))
ENGINE_SECONDS.labels("search").observe(0.003)
print(show_processes().decode())
"""
REJECTIONS = "search_quota_refusals_total"
CUSTOMERS = frozenset({"account", "site", "site_id", "key", "index", "email", "domain", "plan"})


def run_process(folder: Path, count: int) -> Samples:
    """Run a process that increments counters and prints all samples, and return the samples."""
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", COUNT, str(count)],
        env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True,
    )  # fmt: skip
    return samples_of(done.stdout)


@pytest.mark.slow
def test_counts_of_ended_processes_are_merged_into_one_file_of_each_kind(tmp_path: Path) -> None:
    seen = [run_process(tmp_path, count) for count in (1, 10, 100)]

    assert [value(samples, "search_quota_refusals_total", quota="keys") for samples in seen] == [1, 11, 111]
    last = seen[-1]
    assert value(last, "search_engine_seconds_count", operation="search") == 3
    assert value(last, "search_engine_seconds_bucket", operation="search", le="0.0025") == 0
    assert value(last, "search_engine_seconds_bucket", operation="search", le="0.005") == 3
    assert value(last, "search_engine_seconds_bucket", operation="search", le="+Inf") == 3
    assert value(last, "search_engine_seconds_sum", operation="search") == pytest.approx(0.009)
    kinds = [file.name.rpartition("_")[0] for file in tmp_path.glob("*.db")]
    assert max(map(kinds.count, kinds)) == 2, "one lock of the last process, and one of all processes before it"


def test_version_is_reported() -> None:
    ((_, labels),) = [key for key in samples_of(show_processes().decode()) if key[0] == "search_build_info"]

    assert {name for name, _ in labels} == {"version", "python"}


def test_promised_metrics_are_present_and_name_no_customer(app: Flask, tenant: Tenant) -> None:
    tenant.index(page(1))
    tenant.find("page")

    samples = scrape(app)

    names = {name for name, _ in samples}
    assert names >= {
        "search_engine_seconds_bucket", "search_documents", "search_events_waiting", "search_events_lost_total",
        "search_counter_store_seconds_bucket", "search_quota_refusals_total", "search_source_runs_total",
        "search_crawl_errors_total", "search_build_info", "search_disk_free_bytes",
    }  # fmt: skip
    assert not CUSTOMERS & {label for _, labels in samples for label, _ in labels}
    assert tenant.email not in str(samples)
    assert "site_1" not in str(samples)


# Questions need a language model: tests/api/test_asks.py counts their rejections.
@pytest.mark.parametrize("quota", [name for name in LIMIT_NAMES if name != "asks_per_day"])
def test_quota_rejection_is_counted_once(app: Flask, tenant: Tenant, quota: str) -> None:
    tenant.index(page(1))
    tenant.set_plan("pro", **{quota: 1})
    app.extensions["runtime"].counters.reset_all()
    tenant.find("page")
    before = scrape(app)

    requests: dict[str, Callable[[], TestResponse]] = {
        "sites": lambda: tenant.browser.post("/sites", json={"name": "Two", "url": "https://two.example.com/"}),
        "keys": lambda: tenant.browser.post(f"/api/sites/{tenant.site_id}/keys", json={"name": "x", "type": "search"}),
        "documents": lambda: tenant.private.post("/api/v1/index/bulk", json={"documents": [page(2)]}),
    }
    rejected = requests.get(quota, lambda: tenant.search.get("/v1/search?q=page"))()

    assert rejected.status_code in (403, 429), rejected.get_json()
    after = scrape(app)
    counted = {
        name: value(after, REJECTIONS, quota=name) - value(before, REJECTIONS, quota=name) for name in LIMIT_NAMES
    }
    assert counted == {name: float(name == quota) for name in LIMIT_NAMES}
