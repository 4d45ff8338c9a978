"""A service and an engine in one small server, to observe the requests of the search box and to simulate failures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

from app.pages.search_box import ASK_SCRIPT, RELATED_SCRIPT, RESULTS_SCRIPT, SCRIPT, TEXTS_SCRIPT

SCRIPT_ELEMENT = '<script src="/widget.js" data-key="svc_pub_test" async></script>'
OPEN, CLOSE = "\ue000", "\ue001"
"""Highlight marks in configured responses of :class:`Stub`; it replaces them with the requested tags."""

STRICT = (
    "default-src 'none'; script-src 'self' 'nonce-page'; connect-src 'self'; img-src data:; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""A policy that allows the box, the page's own script with the nonce, and nothing else."""


def page_with(script: str, *, attributes: str = 'lang="en"', body: str = "") -> str:
    """Return a tenant's page with room for two boxes."""
    return (
        f'<!doctype html><html {attributes}><meta charset="utf-8"><link rel="icon" href="data:,"><title>Museum</title>'
        f'{body}<div id="site-search"></div><div id="other"></div>{script}</html>'
    )


class Stub:
    """Configured responses of the server, and the received requests.

    Attributes:
        info: The response of client-info; its ``engine_host`` is the server.
        page: The tenant's page.
        pages: Path to an additional page.
        policy: The page's Content-Security-Policy.
        answers: Path to statuses and bodies, one for each request; the last one repeats.
        found: Query to the status and body of its searches, instead of those in ``answers``.
        popular: Popular searches. Requests for them are not searches: they use no ``answers``, and ``sent`` has none.
        popular_status: Status of responses with popular searches.
        popular_requests: Bodies of the requests for popular searches.
        files: Path to an additional script.
        pictures: Path to an image, as SVG.
        missing: Paths that do not exist.
        headers: Path and headers of every request, in order.
        held: Paths whose responses wait for ``release``.
        waiting: Query to an event that the responses to its searches wait for.
        addresses: Path and query string of every request, in order.
        sent: Path, Authorization header, and body of every request, in order.
    """

    def __init__(self) -> None:
        self.base_url = ""
        self.page = page_with(SCRIPT_ELEMENT)
        self.pages: dict[str, str] = {}
        self.policy = STRICT
        self.info: dict[str, Any] = {}
        self.answers: dict[str, list[tuple[int, Any]]] = {}
        self.found: dict[str, tuple[int, Any]] = {}
        self.popular: list[str] = []
        self.popular_status = 200
        self.popular_requests: list[Any] = []
        self.files: dict[str, str] = {}
        self.pictures: dict[str, str] = {}
        self.missing: set[str] = set()
        self.headers: list[tuple[str, Any]] = []
        self.held: set[str] = set()
        self.waiting: dict[str, Event] = {}
        self.release = Event()
        self.addresses: list[str] = []
        self.sent: list[tuple[str, str, Any]] = []

    def bodies(self, path: str) -> list[Any]:
        return [body for sent_path, _, body in self.sent if sent_path == path]

    def searches(self, query: str) -> list[Any]:
        """Return the bodies of the searches for a query, without those for the keystrokes before it."""
        return [body for _, _, body in self.sent if isinstance(body, dict) and body.get("q") == query]

    def answer(self, path: str, sent: Any) -> tuple[int, str, bytes]:
        if path in self.missing:
            return 404, "text/plain", b""
        if path == "/":
            return 200, "text/html", self.page.encode()
        if path in self.pages:
            return 200, "text/html", self.pages[path].encode()
        if path == "/widget.js":
            return 200, "text/javascript", SCRIPT.read_bytes()
        if path == "/widget-results.js" and path not in self.files and path not in self.answers:
            return 200, "text/javascript", RESULTS_SCRIPT.read_bytes()
        if path == "/widget-related.js":
            return 200, "text/javascript", RELATED_SCRIPT.read_bytes()
        if path == "/widget-ask.js":
            return 200, "text/javascript", ASK_SCRIPT.read_bytes()
        if path == "/widget-texts.js":
            return 200, "text/javascript", TEXTS_SCRIPT.read_bytes()
        if path in self.files:
            return 200, "text/javascript", self.files[path].encode()
        if path in self.pictures:
            return 200, "image/svg+xml", self.pictures[path].encode()
        if _is_popular(sent):
            suggestions = [{"text": text, "kind": "query"} for text in self.popular]
            body = {"hits": [], "estimatedTotalHits": 0, "suggestions": suggestions}
            return self.popular_status, "application/json", json.dumps(body).encode()
        query = sent.get("q") if isinstance(sent, dict) else None
        if path in self.held:
            self.release.wait(60)
        if query in self.waiting:
            self.waiting[query].wait(60)
        if query in self.found:
            status, body = self.found[query]
            return status, "application/json", json.dumps(_marked(body, sent)).encode()
        if path == "/v1/client-info" and path not in self.answers:
            return 200, "application/json", json.dumps({"active": True, **self.info}).encode()
        answers = self.answers.get(path, [(200, {"success": True})])
        status, body = answers.pop(0) if len(answers) > 1 else answers[0]
        return status, "application/json", json.dumps(_marked(body, sent)).encode()


def _is_popular(sent: Any) -> bool:
    """Whether a request is the box's request for popular searches, which has no query and no hits."""
    return isinstance(sent, dict) and sent.get("q") == "" and "suggestions" in sent


def _marked(body: Any, sent: Any) -> Any:
    """Return a response with the highlight tags of the request."""
    search = sent.get("searches", [sent])[0] if isinstance(sent, dict) else {}
    tags = [search.get(f"highlight{name}") for name in ("PreTag", "PostTag")]
    if tags[0] is None:
        tags = [search.get(f"highlight_{name}_tag", "") for name in ("start", "end")]
    text = json.dumps(body, ensure_ascii=False)
    return json.loads(text.replace(OPEN, tags[0]).replace(CLOSE, tags[1]))


@contextmanager
def running_stub() -> Iterator[Stub]:
    """Run the server on a free port of this machine."""
    stub = Stub()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            path = urlsplit(self.path).path
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            sent = json.loads(body) if body else None
            stub.addresses.append(self.path)
            stub.headers.append((path, self.headers))
            if _is_popular(sent):
                stub.popular_requests.append(sent)
            else:
                stub.sent.append((path, self.headers.get("Authorization", self.path), sent))
            status, kind, content = stub.answer(path, sent)
            with suppress(BrokenPipeError, ConnectionResetError):  # The box no longer waits for old responses.
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                if kind == "text/html":
                    self.send_header("Content-Security-Policy", stub.policy)
                self.end_headers()
                self.wfile.write(content)

        do_GET = do_POST = _answer

        def log_message(self, format: str, *args: Any) -> None:
            """Do not log requests."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        stub.base_url = f"http://127.0.0.1:{httpd.server_port}"
        thread = Thread(target=httpd.serve_forever)
        thread.start()
        try:
            yield stub
        finally:
            stub.release.set()
            httpd.shutdown()
            thread.join()
