"""Code samples in four languages are valid programs and send the documented requests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import pytest
from flask import Flask
from werkzeug.serving import make_server

from app.apidoc.openapi import document
from app.apidoc.reference import BASE_URL, Operation, read_reference
from app.apidoc.samples import ANY_KEY, LANGUAGES, Call, write_samples
from tests.callers import Tenant
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

COMMANDS = {
    "curl": ["bash", "{file}"],
    "python": [sys.executable, "{file}"],
    "javascript": ["node", "{file}"],
    "php": ["php", "{file}"],
}
SUFFIXES = {"curl": ".sh", "python": ".py", "javascript": ".mjs", "php": ".php"}
CHECKERS = {
    "curl": ["bash", "-n", "{file}"],
    "javascript": [
        "node",
        "-e",
        "const vm = require('node:vm');"
        "for (const code of JSON.parse(require('node:fs').readFileSync(process.argv[1])))"
        " new vm.Script(`async () => {${code}}`);",
        "{file}",
    ],
    "php": [
        "php",
        "-r",
        "foreach (json_decode(file_get_contents($argv[1])) as $code) token_get_all($code, TOKEN_PARSE);",
        "{file}",
    ],
}
"""Commands that parse all samples of a language at once, without running them."""

HARD: dict[str, object] = {
    "quotes": 'it\'s "so" \\ `$HOME` ${x} $(y)',
    "lines": "one\ntwo\t$three\r\n",
    "letters": "Öffnungszeiten 你好 🚢 <script>",
    "nothing": None,
    "yes": True,
    "numbers": [0, -1.5, 10**12],
    "empty": {},
    "none": [],
    "deep": [{"a": [{"b": {"c": "d" * 80}}]}],
}


def command_of(parts: list[str], file: Path) -> list[str]:
    """Return the command with its file. If its program is missing, skip the test, or fail it in CI."""
    if shutil.which(parts[0]) is None:
        missing = f"{parts[0]} is missing"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return [part.replace("{file}", str(file)) for part in parts]


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)


@pytest.fixture
def operations(app: Flask) -> dict[str, Operation]:
    """Map operation IDs to operations."""
    with app.app_context():
        groups = read_reference(document()).groups.values()
    return {operation.name: operation for group in groups for operation in group.operations}


@pytest.mark.clients
@pytest.mark.parametrize("language", CHECKERS)
def test_every_sample_parses_in_its_language(operations: dict[str, Operation], tmp_path: Path, language: str) -> None:
    samples = [operation.samples[language] for operation in operations.values()]
    file = tmp_path / "samples"

    def check(*codes: str) -> subprocess.CompletedProcess[str]:
        file.write_text("\n".join(codes) if language == "curl" else json.dumps(codes))
        return run(command_of(CHECKERS[language], file))

    good = check(*samples)
    bad = check(*samples, samples[0] + " ((")

    assert (good.returncode, good.stderr) == (0, "")
    assert bad.returncode != 0


def test_every_python_sample_compiles(operations: dict[str, Operation]) -> None:
    for operation in operations.values():
        compile(operation.samples["python"], operation.name, "exec")


class Service:
    """A running service and a reader who runs samples against it."""

    def __init__(self, tenant: Tenant, address: str, folder: Path):
        self.tenant = tenant
        self.address = address
        self._folder = folder

    def paste(self, language: str, sample: str) -> subprocess.CompletedProcess[str]:
        """Run a sample with the reader's key filled in, as the page does."""
        file = self._folder / f"sample{SUFFIXES[language]}"
        file.write_text(sample.replace(BASE_URL, self.address).replace(ANY_KEY, self.tenant.tokens["private"]))
        return run(command_of(COMMANDS[language], file))


@contextmanager
def serving(application: WSGIApplication) -> Iterator[str]:
    """Serve an application and yield its URL."""
    server = make_server("127.0.0.1", 0, application, threaded=True)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def service(tenant: Tenant, tmp_path: Path) -> Iterator[Service]:
    tenant.set_plan("business")
    with serving(tenant.app.wsgi_app) as address:
        yield Service(tenant, address, tmp_path)


LANGUAGE = pytest.mark.parametrize(
    "language", ["curl", "python", *(pytest.param(name, marks=pytest.mark.clients) for name in ("javascript", "php"))]
)


@pytest.mark.slow
@LANGUAGE
def test_samples_can_index_search_and_delete(service: Service, operations: dict[str, Operation], language: str) -> None:
    def paste(name: str) -> str:
        done = service.paste(language, operations[name].samples[language])
        assert done.returncode == 0, done.stderr
        return done.stdout

    def body(name: str) -> dict[str, Any]:
        shown: dict[str, Any] = json.loads(operations[name].bodies["application/json"])
        return shown

    sent = {document["id"] for document in body("indexDocuments")["documents"]}
    removed = body("deleteDocument")["id"]
    assert "indexed" in paste("indexDocuments")
    assert set(service.tenant.found_ids("*")) == sent
    found = paste("searchByBody")
    assert any(document["title"] in found for document in body("indexDocuments")["documents"])
    assert "deleted" in paste("deleteDocument")
    assert set(service.tenant.found_ids("*")) == sent - {removed}
    assert "Pages" in paste("listSites")


class Listener:
    """A server that only records requests.

    Attributes:
        heard: Method, query, content type, and body of each request.
    """

    def __init__(self) -> None:
        self.heard: list[tuple[str, dict[str, str], str, bytes]] = []

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        query = dict(parse_qsl(environ["QUERY_STRING"]))
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        self.heard.append((environ["REQUEST_METHOD"], query, environ["CONTENT_TYPE"], body))
        start_response("200 OK", [("Content-Type", "application/json")])
        return [b"{}"]


@LANGUAGE
def test_samples_send_parameters_and_bodies_unchanged(tmp_path: Path, language: str) -> None:
    listener = Listener()
    text = 'id,title,content,url\n1,"It\'s $5, or ""free""",\\ Öl\r\n,/a\n'
    with serving(listener) as address:
        calls = [
            Call("PATCH", f"{address}/x", {"q": "a b&c=d'\""}, token=ANY_KEY, body=HARD),
            Call("POST", f"{address}/x", body=text, content_type="text/csv"),
        ]
        for call in calls:
            file = tmp_path / f"sample{SUFFIXES[language]}"
            file.write_text(write_samples(call)[language])
            done = run(command_of(COMMANDS[language], file))
            assert done.returncode == 0, done.stderr

    (first, second) = listener.heard
    assert (*first[:3], json.loads(first[3])) == ("PATCH", {"q": "a b&c=d'\""}, "application/json", HARD)
    assert second == ("POST", {}, "text/csv", text.encode())


def test_every_operation_has_a_sample_in_each_language(operations: dict[str, Operation]) -> None:
    for operation in operations.values():
        assert operation.samples.keys() == LANGUAGES.keys()
