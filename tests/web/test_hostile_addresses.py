"""Malformed URLs in any input are rejected as the caller's mistake, or ignored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.callers import ApiClient, Tenant, page
from tests.pages.people import person_of
from tests.responses import assert_ok

HOSTILE = [
    "[",
    "]",
    "//[",
    "http://[",
    "http://[::1",
    "http://[::1]x/",
    "http://[v1.a]/",
    "http://[fe80::1%25a]/",
    "http://[@www.example.com/",
    "https://a\uff1ab@www.example.com/",
    "https://www\uff0fexample.com/",
    "https://\u2100.example.com/",
    "https://www.example.com:99999/",
    "https://www.example.com:x/",
    "https://",
    "http:///x",
    "http://%",
    "https://\udcff.example.com".encode("utf-8", "replace").decode(),
]
"""Python's ``urlsplit`` raises for some of these URLs, and a browser's parser for others."""


@pytest.fixture(params=HOSTILE)
def url(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def places(tenant: Tenant, url: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield requests of a private key that contain a URL: method, path, and body."""
    site = f"/sites/{tenant.site_id}"
    api = f"/api{site}"
    text = quote(url, safe="")
    yield "POST", "/sites", {"name": "Other", "url": url}
    yield "PUT", site, {"url": url}
    yield "PUT", site, {"domains": [url]}
    yield "POST", f"{api}/sources", {"kind": "website", "url": url}
    yield "POST", f"{api}/sources/preview", {"url": url}
    yield "GET", f"{api}/sources/lookup?url={text}", {}
    yield "POST", f"{api}/import?format=file&url={text}", {}
    yield "POST", f"{api}/import-config?format=docsearch", {"start_urls": [url], "sitemap_urls": [url]}
    yield (
        "POST",
        f"{api}/import-config?format=docsearch",
        {"start_urls": ["https://www.example.com/"], "stop_urls": [url]},
    )
    yield "POST", "/api/webhooks", {"url": url, "events": ["run.finished"]}
    yield "POST", f"{api}/keys", {"name": "k", "type": "public", "allowed_origins": [url]}
    settings = {"no_results_links": [{"text": "t", "url": url}]}
    yield "PUT", f"{site}/search-settings", settings
    for do in (
        {"redirect": url},
        {"notice": {"text": "t", "url": url}},
        {"boost": {"filters": f'url = "{url}"', "rank": 1}},
    ):
        yield "PUT", f"{site}/search-settings", {"rules": [{"id": "r", "when": {}, "do": do}]}
    yield "PUT", f"{site}/search-settings", {"boosts": [{"path": url, "rank": 1}]}
    yield "POST", "/api/v1/index/bulk", {"documents": [page(7, url=url)]}


def test_malformed_url_in_a_request_never_causes_a_server_error(ann: Tenant, url: str) -> None:
    for method, path, body in places(ann, url):
        response = ann.private.call(method, path, **({"json": body} if body or method != "GET" else {}))
        assert response.status_code < 500, f"{method} {path} {body}: {response.get_data(as_text=True)[:300]}"


def test_malformed_url_in_a_header_never_causes_a_server_error(ann: Tenant, url: str) -> None:
    for header in ("Origin", "Referer", "X-Search-Page", "X-Forwarded-Host"):
        headers = {header: url.encode("utf-8", "replace").decode("latin-1")}
        for client in (ann.public, ann.search, ann.private):
            for path in ("/v1/search?q=page", "/v1/client-info"):
                assert client.get(path, headers=headers).status_code < 500, (header, path)
        login = ApiClient(ann.app).post("/login", json={"email": "a@b.c", "password": "x"}, headers=headers)
        assert login.status_code in (401, 403)


def test_documents_with_malformed_urls_in_other_fields_are_found_and_displayed(tenant: Tenant) -> None:
    """Only the field ``url`` of a document must be a URL; other fields may contain any text."""
    tenant.set_plan("business")
    documents = [
        page(number, title="The harbour", url=f"/{number}", image=url, breadcrumbs=[url], section=url, type=url)
        for number, url in enumerate(HOSTILE)
    ]
    tenant.index(*documents)
    assert_ok(tenant.browser.put(f"/sites/{tenant.site_id}", json={"agents": True}))
    key, public = tenant.tokens["search"], tenant.tokens["public"]
    algolia = {"requests": [{"indexName": "a", "query": "harbour", "hitsPerPage": 50}]}
    for response in (
        tenant.search.get("/v1/search?q=harbour&limit=50&highlight=true"),
        tenant.search.get("/v1/suggest?q=harbour"),
        *(ApiClient(tenant.app).get(f"/customsearch/v1?q=harbour&key={key}&start={start}") for start in (1, 11)),
        ApiClient(tenant.app).post("/1/indexes/*/queries", json=algolia, headers={"X-Algolia-API-Key": key}),
    ):
        assert_ok(response)
    for url in HOSTILE:
        related = tenant.public.get("/v1/related", query_string={"url": url})
        assert related.status_code in (200, 404) or (related.status_code == 400 and len(url) != 0), url
    for path in (f"/agents/{public}/llms.txt", f"/agents/{public}/llms-full.txt"):
        assert ApiClient(tenant.app).get(path).status_code == 200
    for url in HOSTILE:
        assert ApiClient(tenant.app).get(f"/agents/{public}/page.md?url={quote(url, safe='')}").status_code < 500
    person = person_of(tenant)
    for path in (f"/sites/{tenant.site_id}/search?q=harbour", f"/sites/{tenant.site_id}/documents?q=harbour"):
        assert person.call("GET", path).status_code in (200, 404)
