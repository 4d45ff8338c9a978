"""The Host header: an invalid host returns a 400 in the usual format on every path, and never appears in a URL."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.callers import ApiClient, Tenant
from tests.conftest import close_app, make_app, make_settings
from tests.responses import assert_error, assert_ok

NO_HOSTS = (
    "", "a b", "x:99999", "x:65536", "x:y", "x:-1", ":80", "http://x", "x/y", "x?y", "a@b", "x,y", "*", "a..b", ".",
    "[::1", "[::1]x", "[zz]", "[1.2.3.4]", "x:80:80", "x\ty", "\xe9.example", "<script>", "x" * 64, "x." * 127 + "x",
)  # fmt: skip
PATHS = ("/", "/v1/client-info", "/sites", "/nowhere", "/healthz", "/login", "/static/style.css")


@pytest.mark.parametrize("host", NO_HOSTS)
def test_invalid_host_header_returns_400(ann: Tenant, host: str) -> None:
    for path in PATHS:
        for client in (ann.private, ApiClient(ann.app)):
            assert_error(client.get(path, headers={"Host": host}), 400, "validation_failed", field="Host")
    below = ann.private.post("/engine/multi-search", json={}, headers={"Host": host})
    assert (below.status_code, below.get_json()["code"]) == (400, "bad_request")


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("x", "http://x"),
        ("Pages.example.", "http://Pages.example."),
        ("xn--bcher-kva.example:8000", "http://xn--bcher-kva.example:8000"),
        ("search_app:8000", "http://search_app:8000"),
        ("x:80", "http://x"),
        ("x:443", "http://x:443"),
        ("x:", "http://x"),
        ("127.0.0.1:65535", "http://127.0.0.1:65535"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("[::1]", "http://[::1]"),
    ],
)
def test_valid_host_header_determines_the_engine_url(ann: Tenant, host: str, address: str) -> None:
    answer = assert_ok(ann.public.get("/v1/client-info", headers={"Host": host}))

    assert answer["engine_host"] == f"{address}/engine"


@pytest.mark.parametrize(("protocol", "status"), [("HTTP/1.1", 400), ("HTTP/1.0", 200)])
def test_missing_host_header_is_allowed_only_before_http_1_1(ann: Tenant, protocol: str, status: int) -> None:
    def without_host(environ: dict[str, str], start_response: object) -> object:
        del environ["HTTP_HOST"]
        return wsgi({**environ, "SERVER_PROTOCOL": protocol, "SERVER_NAME": "10.0.0.1"}, start_response)

    wsgi = ann.app.wsgi_app
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ann.app, "wsgi_app", without_host)
        response = ann.public.get("/v1/client-info")

    assert response.status_code == status
    if status == 200:
        assert response.get_json()["engine_host"] == "http://10.0.0.1/engine"


def test_configured_public_url_takes_precedence_over_the_host_header(tmp_path: Path) -> None:
    app = make_app(make_settings(tmp_path, public_url="https://search.example/base"))
    try:
        answer = assert_ok(ApiClient(app).get("/", headers={"Host": "10.0.0.1:8000"}))
        assert answer["documentation"] == "https://search.example/base/docs"
    finally:
        close_app(app)


def test_cacheable_responses_do_not_depend_on_the_host_header(ann: Tenant) -> None:
    """Otherwise, an attacker could poison a shared cache that ignores the Host header."""
    kept = set()
    for rule in ann.app.url_map.iter_rules():
        if "GET" not in (rule.methods or ()) or rule.arguments:
            continue
        for accepted in ("text/html", "application/json"):
            headers = {"Host": "evil.example", "X-Forwarded-Host": "evil.example", "Accept": accepted}
            response = ApiClient(ann.app).get(rule.rule, headers=headers)
            text = response.get_data(as_text=True) + str(response.headers)
            if re.search(r"public|max-age", response.headers.get("Cache-Control", "")):
                kept.add(rule.rule)
                assert "evil.example" not in text, rule.rule
            assert "evil.example" not in response.headers.get("Location", ""), rule.rule
    assert {"/widget.js", "/widget-ask.js", "/widget-related.js", "/widget-results.js", "/widget-texts.js"} <= kept
