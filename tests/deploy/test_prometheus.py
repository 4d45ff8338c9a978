"""The alert rules and the dashboard query existing metrics, in valid PromQL; each alert fires when it should."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from flask import Flask

from app.documentation import anchor_of
from tests.callers import page, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.metrics.samples import Samples, scrape
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).resolve().parents[2]
PROMETHEUS, DASHBOARD = PROJECT / "deploy/prometheus", PROJECT / "deploy/grafana/site-search.json"
OF_OTHERS = {"up", "probe_ssl_earliest_cert_expiry", "ALERTS"}
"""Metrics of Prometheus itself and of the blackbox exporter."""
_WORDS = re.compile(r"\b(?:by|without|on|ignoring)\s*\([^)]*\)|\b(?:and|or|unless|bool|Inf)\b")
_SELECTOR = re.compile(r"([a-zA-Z_:][\w:]*)\s*(?:\{([^}]*)\})?(?!\s*[\w(])")
_MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((PROMETHEUS / "rules.yml").read_text())["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def panels() -> list[dict[str, Any]]:
    return [panel for panel in json.loads(DASHBOARD.read_text())["panels"] if panel["type"] != "row"]


def queries() -> list[str]:
    """Return every query of the rules and of the dashboard, with Grafana's variables filled in."""
    asked = [rule["expr"] for rule in rules()]
    asked += [target["expr"] for panel in panels() for target in panel["targets"]]
    return [query.replace("$__rate_interval", "5m").replace("$instance", ".*") for query in asked]


def selectors(query: str) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Yield the metrics of a query, each with its matchers: label, operator, value."""
    rest = re.sub(r"\[[^\]]*\]", "", _WORDS.sub(" ", query))
    for name, matchers in _SELECTOR.findall(rest):
        yield name, _MATCHER.findall(matchers)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Samples]:
    """The metrics of an application after a little use."""
    folder = tmp_path_factory.mktemp("service")
    app: Flask = make_app(make_settings(folder, search_url=f"tantivy://{folder / 'indexes'}"))
    tenant = register_tenant(app, "ann@example.com")
    tenant.index(page(1))
    tenant.find("page")
    app.extensions["runtime"].health.check()
    yield scrape(app)
    close_app(app)


@pytest.mark.parametrize("query", queries())
def test_queried_metrics_and_labels_exist(samples: Samples, query: str) -> None:
    asked = list(selectors(query))
    assert asked, query
    for name, matchers in asked:
        if name in OF_OTHERS:
            continue
        exported = [dict(labels) for found, labels in samples if found == name]
        assert exported, f"{name} is not exported"
        for label, operator, wanted in matchers:
            if label in ("instance", "job"):
                continue  # Prometheus adds them.
            values = {labels.get(label) for labels in exported}
            assert None not in values, f"{name} has no label {label}"
            if operator == "=":
                assert wanted in values, f"{name} has no sample with {label}={wanted}"
            elif label != "status":  # No request has failed here.
                assert any(re.fullmatch(wanted, value or "") for value in values), f"{name}: {label} {wanted}"


def test_misspelt_metric_is_detected_by_the_selector_parser() -> None:
    ((name, matchers), second) = selectors('sum by (le) (rate(serch_seconds_bucket{operation="x"}[5m])) / serch > 1')
    assert (name, matchers, second) == ("serch_seconds_bucket", [("operation", "=", "x")], ("serch", []))


def test_every_metric_of_the_contract_is_on_the_dashboard() -> None:
    shown = {name.removesuffix("_bucket").removesuffix("_sum") for query in queries() for name, _ in selectors(query)}
    assert shown >= {
        "search_engine_seconds", "search_index_bytes", "search_documents", "search_events_waiting",
        "search_events_lost_total", "search_counter_store_seconds", "search_quota_refusals_total",
        "search_source_runs_total", "search_build_info",
    }  # fmt: skip


def test_every_panel_has_a_description_and_does_not_overlap_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        assert panel["description"].endswith("."), panel["title"]
        place = panel["gridPos"]
        columns, lines = range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
        fields = {(column, line) for column in columns for line in lines}
        assert not fields & taken, panel["title"]
        assert max(columns) < 24, panel["title"]
        taken |= fields
    ids = [panel["id"] for panel in json.loads(DASHBOARD.read_text())["panels"]]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_alert_has_a_summary_an_action_and_an_existing_runbook_section(rule: dict[str, Any]) -> None:
    assert set(rule["annotations"]) == {"summary", "action", "runbook"}
    assert rule["labels"]["severity"] in ("critical", "warning")
    file, _, anchor = rule["annotations"]["runbook"].partition("#")
    text = (PROJECT / file).read_text()
    assert anchor in [anchor_of(heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)]
    assert f"| `{rule['alert']}` |" in text


def test_every_alert_has_a_rule_test() -> None:
    tests = (PROMETHEUS / "rules-test.yml").read_text()
    assert {rule["alert"] for rule in rules()} == set(re.findall(r'alertname="(\w+)"', tests))


def promtool(*arguments: str | Path) -> None:
    """Run Prometheus' own tool. Without it, the test is skipped; with CI set, it fails."""
    program = shutil.which("promtool")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("promtool is missing: install the package prometheus")
        pytest.skip("promtool is needed")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_accepts_the_rules() -> None:
    promtool("check", "rules", PROMETHEUS / "rules.yml")


def test_alerts_fire_only_under_their_conditions() -> None:
    promtool("test", "rules", PROMETHEUS / "rules-test.yml")


def test_promtool_accepts_the_example_configuration(tmp_path: Path) -> None:
    for name in ("prometheus.yml", "rules.yml"):
        shutil.copy(PROMETHEUS / name, tmp_path)
    (tmp_path / "metrics-token").write_text("token")

    promtool("check", "config", tmp_path / "prometheus.yml")


def test_all_queries_are_valid_promql(tmp_path: Path) -> None:
    recorded = [{"record": f"panel:{number}", "expr": query} for number, query in enumerate(queries())]
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": recorded}]}))

    promtool("check", "rules", "--lint=none", file)
