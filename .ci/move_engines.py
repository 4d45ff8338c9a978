"""Move real documents from the embedded engine to a real Typesense and back under load, and lose no document or search.

python .ci/move_engines.py DATA
"""

from __future__ import annotations

import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from real_documents import index, read_documents, register

from tests.backends.live_servers import KEY, typesense_cluster
from tests.server import Server, running_server

QUERIES = ("web", "design", "accessibility", "open data", "federal")


def main(data: Path) -> int:
    documents = read_documents(data / "digital-gov" / "documents.jsonl.gz")
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        typesense_cluster(Path(folder), 1) as (node,),
    ):
        embedded = f"tantivy://{folder}/indexes"
        server_engine = f"typesense://:{KEY}@{node.host}?timeout_seconds=30"
        with running_server(
            Path(folder) / "service", default_plan="enterprise", search_url=f"{embedded} {server_engine}"
        ) as server:
            key = register(server)
            server.set_plan("ann@example.com", "enterprise", requests_per_minute="unlimited")
            session = requests.Session()
            session.headers["Authorization"] = f"Bearer {key}"
            index(server, session, documents)
            before = all_documents(server, session)
            assert len(before) == len(documents)
            for target in ("typesense", "tantivy"):
                with searches(server, key) as load:
                    print(server.flask("search", "move", "--to", target, "--json").strip())
                assert load["failed"] == [], load["failed"][:3]
                assert load["done"] > 0
                assert all_documents(server, session) == before, "the documents differ"
                print(f"moved to {target} during {load['done']} searches: none failed, and the documents are the same")
    print("2 passed, 0 failed")
    return 0


def all_documents(server: Server, session: requests.Session) -> dict[str, Any]:
    """Return all documents by ID, as a search for all of them finds them."""
    found: dict[str, Any] = {}
    offset = 0
    while True:
        answer = session.get(f"{server.base_url}/v1/search?q=*&limit=100&offset={offset}", timeout=60)
        assert answer.status_code == 200, answer.text
        hits = answer.json()["results"]["hits"]
        if not hits:
            return found
        found.update({hit["id"]: hit for hit in hits})
        offset += len(hits)


@contextmanager
def searches(server: Server, key: str) -> Any:
    """Search continuously with two clients. The value's ``failed`` lists the failed searches."""
    load: dict[str, Any] = {"done": 0, "failed": []}
    stop = threading.Event()

    def search() -> None:
        session = requests.Session()
        session.headers["Authorization"] = f"Bearer {key}"
        while not stop.is_set():
            for query in QUERIES:
                answer = session.get(f"{server.base_url}/v1/search", params={"q": query, "limit": 5}, timeout=60)
                if answer.status_code != 200 or not answer.json()["results"]["hits"]:
                    load["failed"].append((query, answer.status_code, answer.text[:200]))
                load["done"] += 1

    threads = [threading.Thread(target=search) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        stop.set()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
