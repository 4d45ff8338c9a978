"""Single documents that many clients upsert to one site, compared with one client doing the same.

    python -m benchmarks.shared_commits [--clients 100] [--seconds 10] [--workers 2]

The benchmark starts the service with its defaults (SQLite, the embedded engine) in a temporary folder. When an upsert
returns, it is durable in SQL and in the index, and searchable. A single client pays for one commit per request; many
clients share commits.
"""

from __future__ import annotations

import argparse
import http.client
import json
import tempfile
import threading
import time
from pathlib import Path

import requests

from tests.server import Server, running_server


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=32)
    wishes = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        running_server(
            Path(folder), workers=wishes.workers, default_plan="enterprise", web_threads=wishes.threads
        ) as server,
    ):
        person = requests.Session()
        answer = person.post(
            f"{server.base_url}/register",
            json={"name": "Bench", "email": "bench@example.com", "password": "correct horse battery"},
        ).json()
        person.headers["X-CSRF-Token"] = answer["csrf_token"]
        server.set_plan("bench@example.com", "enterprise", requests_per_minute="unlimited")
        site = person.post(f"{server.base_url}/sites", json={"name": "s", "url": "https://example.com"}).json()["site"]
        key = person.post(
            f"{server.base_url}/api/sites/{site['id']}/keys", json={"name": "k", "type": "private"}
        ).json()["api_key"]
        alone = rate(server, key, 1, wishes.seconds)
        together = rate(server, key, wishes.clients, wishes.seconds)
    print(f"one client:   {alone:8.1f} upserts a second")
    print(f"{wishes.clients} clients: {together:8.1f} upserts a second, {together / alone:.1f} times as many")


def rate(server: Server, key: str, clients: int, seconds: float) -> float:
    """Return acknowledged upserts per second."""
    done = [0] * clients
    end = time.monotonic() + seconds
    host = server.base_url.removeprefix("http://")

    def work(number: int) -> None:
        connection = http.client.HTTPConnection(host, timeout=60)
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        while time.monotonic() < end:
            document = {
                "id": f"{number}-{done[number]}",
                "title": f"Document {done[number]} of client {number}",
                "content": "A page of a few words that somebody has just saved. " * 20,
                "url": f"/pages/{number}/{done[number]}",
            }
            connection.request("POST", "/api/v1/index/bulk", json.dumps({"documents": [document]}), headers)
            response = connection.getresponse()
            body = response.read()
            if response.status != 200:
                raise SystemExit(f"{response.status} {body!r}")
            done[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.monotonic() - started)


if __name__ == "__main__":
    main()
