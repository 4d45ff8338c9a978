"""The sync scripts of the documentation, run against a service that rejects some calls."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from werkzeug.serving import make_server

from tests.callers import Tenant, page
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

SCRIPTS = Path(__file__).resolve().parents[2] / "docs" / "examples"


class Busy:
    """The service, which rejects some calls as if it were busy.

    Attributes:
        rejections: Status and path of the next calls to reject.
        calls: Method and path of every call.
    """

    def __init__(self, application: WSGIApplication):
        self._application = application
        self.rejections: list[tuple[str, str]] = []
        self.calls: list[str] = []

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        self.calls.append(path.rpartition("/")[2])
        if self.rejections and path.endswith(self.rejections[0][1]):
            status, _ = self.rejections.pop(0)
            environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
            start_response(status, [("Retry-After", "0"), ("Content-Type", "application/json")])
            return [b'{"error": "busy"}']
        return self._application(environ, start_response)


class Service:
    """A running service and a customer who syncs with a script."""

    def __init__(self, tenant: Tenant, busy: Busy, address: str, folder: Path, command: list[str]):
        self.tenant = tenant
        self.busy = busy
        self._folder = folder
        self._command = command
        inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        self._environment = {**inherited, "SITE_SEARCH_URL": f"{address}/", "SITE_SEARCH_KEY": tenant.tokens["private"]}

    def sync(self, numbers: Iterable[int], **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the script for pages with these numbers."""
        file = self._folder / "pages.jsonl"
        lines = [json.dumps({**page(number), "title": "Öffnungszeiten"}, ensure_ascii=False) for number in numbers]
        file.write_text("\n".join([*lines, "", ""]), encoding="utf-8")
        return self.run(file, **environment)

    def run(self, file: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._command, str(file)], env={**self._environment, **environment}, capture_output=True, text=True,
            timeout=PATIENCE_SECONDS, check=False,
        )  # fmt: skip

    @property
    def found(self) -> int:
        return int(self.tenant.find("öffnungszeiten")["estimatedTotalHits"])


def command_of(script: str) -> list[str]:
    """Return the command of a script. If its interpreter is missing, skip the test, or fail it in CI."""
    name = {".py": sys.executable, ".php": "php", ".mjs": "node"}[Path(script).suffix]
    interpreter = shutil.which(name)
    if interpreter is None:
        if os.environ.get("CI"):
            pytest.fail(f"{name} is missing")
        pytest.skip(f"{name} is missing")
    return [interpreter, str(SCRIPTS / script)]


@pytest.fixture(
    params=[
        "sync.py",
        pytest.param("sync.php", marks=pytest.mark.clients),
        pytest.param("sync.mjs", marks=pytest.mark.clients),
    ]
)
def service(request: pytest.FixtureRequest, tenant: Tenant, tmp_path: Path) -> Iterator[Service]:
    command = command_of(request.param)
    tenant.set_plan("business")
    busy = Busy(tenant.app.wsgi_app)
    server = make_server("127.0.0.1", 0, busy, threaded=True)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield Service(tenant, busy, f"http://127.0.0.1:{server.port}", tmp_path, command)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_sync_adds_and_removes_pages_to_match_the_file(service: Service) -> None:
    first = service.sync(range(1100))
    calls = list(service.busy.calls)
    second = service.sync(range(50, 1100))

    assert (first.returncode, first.stdout, first.stderr) == (0, "1100 pages sent, 0 removed\n", "")
    assert calls == ["sync", "bulk", "bulk", "bulk", "finish"]
    assert (second.returncode, second.stdout) == (0, "1050 pages sent, 50 removed\n")
    assert service.found == 1050


def test_sync_retries_after_429_and_503_responses(service: Service) -> None:
    service.busy.rejections = [
        ("429 Too Many Requests", "/sync"),
        ("503 Service Unavailable", "/bulk"),
        ("429 Too Many Requests", "/bulk"),
        ("503 Service Unavailable", "/finish"),
    ]

    done = service.sync(range(3))

    assert (done.returncode, done.stdout) == (0, "3 pages sent, 0 removed\n")
    assert done.stderr.count("trying again in 0 s") == 4
    assert service.busy.calls == ["sync", "sync", "bulk", "bulk", "bulk", "finish", "finish"]
    assert service.found == 3


def test_sync_gives_up_after_eight_failed_attempts(service: Service) -> None:
    service.busy.rejections = [("503 Service Unavailable", "/bulk")] * 8

    done = service.sync(range(3))

    assert done.returncode != 0
    assert "gave up: " in done.stderr
    assert service.busy.calls == ["sync", *["bulk"] * 8]


def test_sync_removes_many_pages_only_if_allowed(service: Service) -> None:
    service.sync(range(50))

    rejected = service.sync(range(20))
    kept = service.found
    allowed = service.sync(range(20), MAX_REMOVED_PERCENT="100")

    assert rejected.returncode != 0
    assert "sync_removes_too_much" in rejected.stderr
    assert "30 of the source's 50 documents" in rejected.stderr
    assert kept == 50
    assert (allowed.returncode, allowed.stdout) == (0, "20 pages sent, 30 removed\n")


def test_invalid_page_aborts_the_sync_and_removes_nothing(service: Service) -> None:
    service.sync(range(5))
    file = service._folder / "bad.jsonl"
    file.write_text(json.dumps({"id": "x"}) + "\n")

    done = service.run(file)

    assert done.returncode != 0
    assert "title is required" in done.stderr
    assert service.busy.calls[-1] == "bulk"
    assert service.found == 5


def test_sync_keeps_pages_of_other_sources(service: Service) -> None:
    service.tenant.index({**page(100), "title": "Öffnungszeiten"})
    service.sync(range(3), SITE_SEARCH_SOURCE="shop")

    done = service.sync(range(5, 8))

    assert done.stdout == "3 pages sent, 0 removed\n"
    assert service.found == 7
