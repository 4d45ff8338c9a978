"""A customer's web server, for what is fetched by real requests."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Website:
    """What the server answers, and what it was asked.

    Attributes:
        base_url: Where it is, without a final slash.
        pages: Path and query to HTML; everything else is 404.
        requests: Path and headers of each request, headers by their names in lower case.
    """

    base_url: str
    pages: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)


@contextmanager
def running_website(pages: Mapping[str, str]) -> Iterator[Website]:
    """A server on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            body = site.pages.get(self.path)
            self.send_response(404 if body is None else 200)
            kind = "application/xml" if self.path.endswith(".xml") else "text/plain" if self.path.endswith(".txt") else "text/html"
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            data = (body or "not here").encode()
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Tests print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        site = Website(f"http://127.0.0.1:{httpd.server_port}", dict(pages))
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        try:
            yield site
        finally:
            httpd.shutdown()
            thread.join()
