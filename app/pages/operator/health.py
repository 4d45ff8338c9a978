"""Health of the installation, for operators: dependencies, checks, queues, and failed crawls."""

from __future__ import annotations

from app.operations.diagnosis import MODEL_TOPIC, SLOW_TOPICS, diagnose
from app.operations.machine_checks import Finding
from app.pages.layout import render
from app.pages.operator.access import for_operators
from app.runtime import runtime
from app.services.operator_reports import list_engine_usage, list_failed_runs, list_queues


@for_operators
def show_health() -> str:
    """Show the state of the installation, as seen by this process. Slow checks are left to the command ``doctor``."""
    return _page(SLOW_TOPICS)


@for_operators
def check_model() -> str:
    """Show the same page after asking the language model one short question, which may cost money."""
    return _page(SLOW_TOPICS - {MODEL_TOPIC})


def _order(finding: Finding) -> tuple[int, bool]:
    """Return the key for sorting: problems first, and the requested check of the model before others of its level."""
    return ("problem", "warning", "ok").index(finding.level), finding.topic != MODEL_TOPIC


def _page(skipped_topics: frozenset[str]) -> str:
    current_runtime = runtime()
    findings = list(diagnose(current_runtime.settings, current_runtime, skipped_topics=skipped_topics))
    with current_runtime.database.read() as session:
        queues = list_queues(session)
        failed_runs = list_failed_runs(session)
        engines = list_engine_usage(session, current_runtime.engines)
    return render(
        "operator_health.html",
        dependencies=current_runtime.health.probe_results,
        missing_indexes=len(current_runtime.health.missing_indexes),
        findings=sorted(findings, key=_order),
        engines=engines,
        queues=queues,
        failed_runs=failed_runs,
        has_language_model=current_runtime.language_model is not None,
    )
