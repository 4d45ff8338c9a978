"""Time of searches while a hundred visitors wait for a language model that does not answer, and without them.

    python -m benchmarks.waiting_asks

The service has its default processes and threads. 50 accounts have two visitors each. The slots of a process let some
of them wait; the others are rejected, and ask again after the seconds of Retry-After. Rounds with and without visitors
alternate, each with as many searches.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import requests

from tests.callers import page
from tests.server import Server, running_server
from tests.service.clients import Customer, register
from tests.services.asks.model_server import ModelServer, run_model_server

ACCOUNTS, VISITORS_OF_ACCOUNT = 50, 2
ROUNDS, SEARCHES = 4, 1000
QUESTION = "When does the museum open on Sundays?"


def search_times(server: Server, customer: Customer) -> list[float]:
    """Return the milliseconds of a round of searches, one after another."""
    times = []
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {customer.tokens['search']}"
        for number in range(SEARCHES):
            began = time.perf_counter()
            response = session.get(f"{server.base_url}/v1/search", params={"q": f"museum {number}"}, timeout=60)
            times.append((time.perf_counter() - began) * 1000)
            assert response.status_code == 200, response.text
    return times


def visit(server: Server, customer: Customer, leaving: threading.Event, statuses: Counter[str]) -> None:
    """Ask again and again until the round ends."""
    while not leaving.is_set():
        began = time.perf_counter()
        with requests.post(
            f"{server.base_url}/v1/ask",
            json={"q": QUESTION, "stream": True, "session_id": f"{customer.email} {threading.get_ident()}"},
            headers={"Authorization": f"Bearer {customer.tokens['search']}"},
            stream=True,
            timeout=60,
        ) as response:
            statuses[f"{response.status_code}, Retry-After {response.headers.get('Retry-After')}"] += 1
            if response.status_code == 200:
                leaving.wait()
            else:
                statuses["slowest rejection, ms"] = max(
                    statuses["slowest rejection, ms"], round((time.perf_counter() - began) * 1000)
                )
                leaving.wait(float(response.headers["Retry-After"]))


def resources(server: Server) -> str:
    """Return the threads and the resident memory of the workers."""
    states = [Path(f"/proc/{pid}/status").read_text() for pid in server.worker_pids()]
    values = {
        name: sum(int(state.split(f"{name}:")[1].split()[0]) for state in states) for name in ("Threads", "VmRSS")
    }
    return f"{values['Threads']} threads, {values['VmRSS'] / 1024:.0f} MiB"


def measure(server: Server, model: ModelServer, customers: list[Customer]) -> None:
    """Measure all rounds, and print the percentiles."""
    model.hang()
    times: dict[bool, list[list[float]]] = {False: [], True: []}
    statuses: Counter[str] = Counter()
    for number in range(2 * ROUNDS):
        is_beside = number % 4 in (1, 2)
        leaving = threading.Event()
        with ThreadPoolExecutor(ACCOUNTS * VISITORS_OF_ACCOUNT) as visitors:
            visits = []
            if is_beside:
                for customer in customers * VISITORS_OF_ACCOUNT:
                    visits.append(visitors.submit(visit, server, customer, leaving, statuses))
                time.sleep(2)
            try:
                times[is_beside].append(search_times(server, customers[0]))
            finally:
                leaving.set()
            print(f"{'beside' if is_beside else 'without'} visitors: {resources(server)}", flush=True)
            for each in visits:
                each.result()
        time.sleep(2)
    for percentile in (50, 99):
        cuts = {key: statistics.median(statistics.quantiles(each, n=100)[percentile - 1] for each in rounds)
                for key, rounds in times.items()}  # fmt: skip
        print(f"p{percentile}: {cuts[False]:.2f} ms without, {cuts[True]:.2f} ms beside, "
              f"ratio {cuts[True] / cuts[False]:.2f}")  # fmt: skip
    print(dict(statuses))


def main() -> None:
    """Run the benchmark."""
    with run_model_server() as model, tempfile.TemporaryDirectory() as folder:
        settings = {
            "llm_url": model.url,
            "llm_model": "small",
            "llm_timeout": 120,
            "default_plan": "enterprise",
            "trusted_proxies": 1,
        }
        with running_server(Path(folder), workers=os.cpu_count() or 1, **settings) as server:
            customers = [register([server], f"visitor-{number}@example.com") for number in range(ACCOUNTS)]
            for customer in customers:
                document = page(id="hours", title="Opening hours", content="On Sundays, the museum opens at ten.")
                customer.private.must("POST", "/api/v1/index/bulk", {"documents": [document]})
                customer.session.must("PUT", f"/sites/{customer.site_id}/search-settings", {"ask": True})
            server.set_plan(customers[0].email, "enterprise", requests_per_minute="unlimited")
            measure(server, model, customers)
            model.released.set()


if __name__ == "__main__":
    main()
