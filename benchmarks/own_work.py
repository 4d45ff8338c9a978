"""Cost of a search without the engine, compared with bare Flask returning the same bytes under the same gunicorn.

    python -m benchmarks.own_work [--requests 4000] [--rounds 5]

The service runs with an engine that returns results from memory (``benchmarks/constant_engine.py``). The measured cost
is therefore only HTTP, the key, both request limits, the quota, writing the event to disk and moving it to SQL,
checking the parameters, and encoding the response. For responses of two sizes, the benchmark prints the CPU time per
request of the worker process (user and system, from ``/proc``) as the median of all rounds, and the ratio to bare
Flask. Requests to both alternate, each over one kept-alive connection.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests

from benchmarks.sites import make_site
from tests.server import Server, free_port, running_server

_TICKS = os.sysconf("SC_CLK_TCK")
_TEXT = "a page about gardens and the tools that people use in them every day of the year"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limits-url", default="", help="counter store other than the default SQLite")
    wishes = parser.parse_args()
    settings = {"limits_url": wishes.limits_url} if wishes.limits_url else {}
    with (
        tempfile.TemporaryDirectory() as folder,
        running_server(
            Path(folder) / "service", workers=1, application="benchmarks.constant_engine:app",
            default_plan="enterprise", **settings,
        ) as server,
    ):  # fmt: skip
        token = fill(server)
        for name, limit in (("1 hit", 1), ("20 hits", 20)):
            path = f"/v1/search?q=garden+tools&limit={limit}&highlight=true"
            headers = {"Authorization": f"Bearer {token}"}
            answer = ask(server.base_url, path, headers, 1)
            body = Path(folder) / "answer.json"
            body.write_bytes(answer)
            with bare_flask(body) as (url, pid):
                own: list[float] = []
                bare: list[float] = []
                ask(url, "/search", {}, 200)
                ask(server.base_url, path, headers, 200)
                for _ in range(wishes.rounds):
                    bare.append(cost(pid, url, "/search", {}, wishes.requests))
                    own.append(cost(server.worker_pids()[0], server.base_url, path, headers, wishes.requests))
            ratio = statistics.median(a / b for a, b in zip(own, bare, strict=True))
            print(
                f"{name}, {len(answer) / 1000:.0f} kB: service {statistics.median(own):.0f} µs, "
                f"bare Flask {statistics.median(bare):.0f} µs, ratio {ratio:.2f}"
            )


def fill(server: Server) -> str:
    """Create a site with pages, and return a search key."""
    _, tokens = make_site(server)
    words = _TEXT.split()
    documents = [
        {
            "id": str(number),
            "title": f"Garden tools {number}",
            "content": " ".join(words[(number * 7 + at * at) % len(words)] for at in range(400)) + " garden tools",
            "url": f"/pages/{number}",
            "author": f"Author {number % 7}",
        }
        for number in range(100)
    ]
    send_documents(f"{server.base_url}/api/v1/index/bulk", tokens["private"], documents)
    return tokens["search"]


def send_documents(url: str, private_key: str, documents: list[dict[str, Any]]) -> None:
    """Index at most a thousand documents."""
    response = requests.post(
        url, json={"documents": documents}, headers={"Authorization": f"Bearer {private_key}"}, timeout=60
    )
    response.raise_for_status()


@contextmanager
def bare_flask(body: Path) -> Iterator[tuple[str, int]]:
    """Serve the bytes of a file. Yields the address and the worker's process ID."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", "-c", "python:benchmarks", "--bind", f"127.0.0.1:{port}", "--workers", "1",
         "--worker-class", "gthread", "--threads", "8", "--keep-alive", "30", "--log-level", "error", "--preload",
         "benchmarks.bare_flask:app"],
        env={**os.environ, "ANSWER_FILE": str(body)},
    )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(200):
            try:
                ask(url, "/search", {}, 1)
                break
            except OSError:
                time.sleep(0.05)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        yield url, int(children[0])
    finally:
        process.terminate()
        process.wait()


def cost(pid: int, url: str, path: str, headers: dict[str, str], count: int) -> float:
    """Return CPU microseconds per request of a process."""
    before = cpu_seconds(pid)
    ask(url, path, headers, count)
    return (cpu_seconds(pid) - before) / count * 1e6


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def ask(url: str, path: str, headers: dict[str, str], count: int) -> bytes:
    """Send ``count`` requests over one connection, and return the last response."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    answer = b""
    for _ in range(count):
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        answer = response.read()
        if response.status != 200:
            sys.exit(f"{path}: {response.status} {json.loads(answer)}")
    connection.close()
    return answer


if __name__ == "__main__":
    main()
