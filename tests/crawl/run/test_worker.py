"""A worker executes several runs concurrently, renews its claims, and cancels or hands back runs."""

from __future__ import annotations

import threading

import pytest

from app.crawl.run.worker import Worker
from app.crawl.sources import runs
from app.models import SourceRun
from tests.crawl.run.conftest import Runner, counts
from tests.crawl.run.test_execution import make_site
from tests.crawl.run.websites import Website
from tests.patience import PATIENCE_SECONDS


def start(worker: Worker, *, until_idle: bool = False) -> threading.Thread:
    thread = threading.Thread(target=lambda: worker.run(until_idle=until_idle, idle_seconds=0.01), daemon=True)
    thread.start()
    return thread


def test_worker_executes_all_queued_runs_and_exits_when_idle(runner: Runner, website: Website) -> None:
    make_site(website, 4)
    ids = [runner.request(runner.add(f"/{number}")) for number in range(4)]

    Worker(runner.parts, runs_at_once=2).run(until_idle=True, idle_seconds=0.01)

    assert [(run.status, run.indexed) for run in map(runner.load, ids)] == [("finished", 1)] * 4


def test_idle_worker_does_not_wait_for_writers(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner.parts.database, "write", lambda: pytest.fail("takes the lock of writers"))

    Worker(runner.parts, runs_at_once=1).run(until_idle=True)


def test_canceling_a_run_stops_it_promptly(runner: Runner, website: Website) -> None:
    make_site(website, 30)
    source = runner.add()
    run_id = runner.request(source)
    cancelled = threading.Event()

    def cancel(path: str) -> None:
        if path == "/5":
            with runner.part.database.write() as session:
                runs.cancel_run(session, source)
            cancelled.set()
        elif cancelled.is_set():
            threading.Event().wait(0.05)  # The worker checks every few milliseconds.

    website.before = cancel
    Worker(runner.parts, runs_at_once=1, renew_seconds=0.0).run(until_idle=True, idle_seconds=0.01)

    run = runner.load(run_id)
    assert run.status == "cancelled"
    assert run.found == run.indexed + run.unchanged + run.skipped + run.failed


def test_stopped_worker_hands_its_run_back_and_another_finishes_it(runner: Runner, website: Website) -> None:
    make_site(website, 30)
    run_id = runner.request(runner.add())
    worker = Worker(runner.parts, runs_at_once=1)
    website.before = lambda path: worker.stop() if path == "/9" else None
    start(worker).join(PATIENCE_SECONDS)
    between = runner.load(run_id)
    website.before = lambda path: None

    Worker(runner.parts, runs_at_once=1).run(until_idle=True, idle_seconds=0.01)

    run = runner.load(run_id)
    assert (between.status, between.lease) == ("running", None)
    assert (run.status, counts(run)) == ("finished", {"found": 31, "indexed": 31})


@pytest.mark.slow
def test_two_workers_never_execute_the_same_run(runner: Runner, website: Website) -> None:
    make_site(website, 20)
    ids = [runner.request(runner.add(f"/{number}")) for number in range(6)]

    threads = [start(Worker(runner.parts, runs_at_once=2), until_idle=True) for _ in range(2)]
    for thread in threads:
        thread.join(PATIENCE_SECONDS)

    assert {run.status for run in map(runner.load, ids)} == {"finished"}
    asked = [path for path, _ in website.asked if path != "/sitemap.xml"]
    assert sorted(asked) == [f"/{number}" for number in range(6)]


@pytest.mark.slow
def test_long_run_yields_to_queued_runs(runner: Runner, website: Website, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.crawl.run.state.TURN_SECONDS", 0.0)
    make_site(website, 10)
    ended: list[str] = []
    ids = [runner.request(runner.add(f"/?{number}")) for number in range(2)]
    for number in range(2):
        website.pages[f"/?{number}"] = website.pages["/"]

    Worker(runner.parts, runs_at_once=1).run(until_idle=True, idle_seconds=0.01)
    with runner.part.database.read() as session:
        first, second = (session.get_one(SourceRun, run_id) for run_id in ids)
    ended += [first.status, second.status]

    assert ended == ["finished", "finished"]
    assert second.started_at is not None
    assert first.finished_at is not None
    assert second.started_at < first.finished_at


def test_run_whose_claim_lapsed_too_often_fails_without_a_request(runner: Runner, website: Website) -> None:
    make_site(website, 1)
    run_id = runner.request(runner.add())
    with runner.part.database.write() as session:
        session.get_one(SourceRun, run_id).lapses = 11

    Worker(runner.parts, runs_at_once=1).run(until_idle=True, idle_seconds=0.01)

    run = runner.load(run_id)
    assert run.status == "failed"
    assert website.asked == []
