"""A typical workflow with the Python client of openapi-generator; see test_openapi_generator.py."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from site_search import (
    AnalyticsApi,
    ApiClient,
    Bulk,
    Configuration,
    Destroy,
    Document,
    DocumentsApi,
    Error,
    KeyCreate,
    KeysApi,
    Names,
    SearchApi,
    SearchBody,
    SiteCreate,
    SitesApi,
)
from site_search.exceptions import ApiException, BadRequestException, NotFoundException


def rejection(kind: type[ApiException], call: Callable[..., Any], *args: Any, **kwargs: Any) -> Error:
    """Return the body of the error that a call must raise."""
    try:
        call(*args, **kwargs)
    except kind as error:
        if isinstance(error.data, Error):
            return error.data
        raise
    raise AssertionError("it was not refused")


def main(base_url: str, private_token: str) -> None:
    server = ApiClient(Configuration(host=base_url, access_token=private_token))
    documents = DocumentsApi(server)

    site = SitesApi(server).create_site(SiteCreate(name="Museum", url="https://museum.example/")).site
    key = KeysApi(server).create_key(site.id, KeyCreate(name="Search page", type="search"))
    visitor = SearchApi(ApiClient(Configuration(host=base_url, access_token=key.api_key)))
    assert (key.key.type, key.key.expires_at) == ("search", None)

    hours = Document(id="hours", title="Opening hours", content="We open at nine.", url="/hours")
    hours.additional_properties = {"section": "visit"}
    news = Document(id="news", title="News", content="New opening hours.", url="/news", var_date="2024-05-01")
    indexed = documents.index_documents(Bulk(documents=[hours, news], site_id=site.id))
    assert (indexed.created, indexed.updated) == (2, 0)

    found = visitor.search("opning hours", filters="section = visit", facets="section", highlight=True)
    (hit,) = found.results.hits
    assert (hit.id, hit.additional_properties["section"]) == ("hours", "visit")
    assert found.results.matched == "corrected"
    assert found.results.facet_distribution == {"section": {"visit": 1}}
    by_body = visitor.search_by_body(SearchBody(q="hours", facets=Names(["section"])))
    assert sorted(hit.id for hit in by_body.results.hits) == ["hours", "news"]

    analytics = AnalyticsApi(server).show_analytics(period="7d", site_id=site.id)
    assert len(analytics.series) == 7
    assert analytics.previous.click_through_rate is None

    broken = rejection(BadRequestException, visitor.search, "hours", filters="section visit")
    assert (broken.error, broken.details[0].position) == ("invalid_filter", 8)

    assert documents.delete_document(site_id=site.id, destroy=Destroy(id="hours")).deleted == 1
    again = rejection(NotFoundException, documents.delete_document, site_id=site.id, destroy=Destroy(id="hours"))
    assert again.error == "document_not_found"
    assert SitesApi(server).delete_site(site.id).success
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
