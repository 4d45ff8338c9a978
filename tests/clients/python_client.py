"""Index, search, and delete with the generated client. test_python_client.py runs this next to the package."""

from __future__ import annotations

import sys

from site_search_client import AuthenticatedClient
from site_search_client.api.documents import delete_document, index_documents
from site_search_client.api.search import search, search_by_body
from site_search_client.models import (
    Bulk,
    BulkAnswer,
    Destroy,
    DestroyAnswer,
    Document,
    Error,
    SearchAnswer,
    SearchBody,
)


def main(base_url: str, private_token: str, search_token: str) -> None:
    server = AuthenticatedClient(base_url=base_url, token=private_token, raise_on_unexpected_status=True)
    visitor = AuthenticatedClient(base_url=base_url, token=search_token, raise_on_unexpected_status=True)

    hours = Document(id="hours", title="Opening hours", content="We open at nine.", url="/hours", author="Ann")
    hours["section"] = "visit"
    way = Document(id="way", title="Getting here", content="Take the tram.", url="/way")

    indexed = index_documents.sync(client=server, body=Bulk(documents=[hours, way]))
    assert isinstance(indexed, BulkAnswer), indexed
    assert (indexed.success, indexed.indexed, indexed.created, indexed.updated) == (True, 2, 2, 0)

    found = search.sync(client=visitor, q="opning hours", facets="section", limit=5, highlight=True)
    assert isinstance(found, SearchAnswer), found
    hit = found.results.hits[0]
    assert (hit.id, hit.title, hit.author, hit["section"]) == ("hours", "Opening hours", "Ann", "visit")
    assert found.results.facet_distribution.to_dict() == {"section": {"visit": 1}}
    assert found.remaining_quota.used_today == 1

    by_body = search_by_body.sync(client=visitor, body=SearchBody(q="tram", sort=["date:desc"], limit=5))
    assert isinstance(by_body, SearchAnswer), by_body
    assert [hit.id for hit in by_body.results.hits] == ["way"]

    rejected = search.sync(client=visitor, q="tram", limit=101)
    assert isinstance(rejected, Error), rejected
    assert (rejected.error, rejected.details[0].field) == ("validation_failed", "limit")

    deleted = delete_document.sync(client=server, body=Destroy(id="hours"))
    assert isinstance(deleted, DestroyAnswer), deleted
    assert deleted.deleted == 1
    again = delete_document.sync_detailed(client=server, body=Destroy(id="hours"))
    assert (again.status_code, again.parsed.error) == (404, "document_not_found")
    gone = search.sync(client=visitor, q="opening hours")
    assert isinstance(gone, SearchAnswer), gone
    assert [hit.id for hit in gone.results.hits] == []
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
