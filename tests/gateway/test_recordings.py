"""The gateway's responses compared with recorded Meilisearch responses: the same members of the same types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.callers import Tenant
from tests.gateway.callers import Gateway, VisitorClient

RECORDINGS = sorted((Path(__file__).parent / "recordings").glob("*.json"))
DOCUMENT = {
    "id": "p1",
    "title": "Install guide",
    "content": "How to install the widget search service on Linux.",
    "url": "/docs/install",
    "excerpt": "Install on Linux",
}


def same_shape(ours: Any, theirs: Any, place: str = "") -> None:
    """Fail unless both have the same members of the same types; texts and numbers may differ."""
    if isinstance(theirs, dict):
        assert isinstance(ours, dict), place
        assert set(ours) == set(theirs), place
        for name in theirs:
            same_shape(ours[name], theirs[name], f"{place}.{name}")
    elif isinstance(theirs, list):
        assert isinstance(ours, list), place
        assert bool(ours) == bool(theirs), place
        for mine in ours:
            same_shape(mine, theirs[0], f"{place}[]")
    else:
        assert type(ours) is type(theirs), place


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_responses_have_the_same_shape_as_meilisearchs(tenant: Tenant, path: Path) -> None:
    author = {"author": "Ann"} if path.stem in ("search_facets_200", "facet_search_200") else {}
    tenant.index({**DOCUMENT, **author})
    gateway = Gateway(tenant)
    recorded = orjson.loads(path.read_bytes())
    wish = ours_of(recorded["request"], path.stem)
    token = {"no_authorization_401": None, "bad_key_403": "bogus", "health_200": None}.get(path.stem, gateway.token)

    response = VisitorClient(tenant.app, token).call(
        wish["method"], "/engine" + wish["path"], **({} if wish["body"] is None else {"json": wish["body"]})
    )

    expected = recorded["response"]
    assert response.status_code == expected["status"]
    answer = response.get_json()
    if path.stem == "search_facets_200":
        assert answer["hits"][0].pop("author") == "Ann"
    same_shape(answer, expected["body"])
    if response.status_code >= 400:
        for name in ("code", "type", "link"):
            assert answer[name] == expected["body"][name]
    elif "hits" in answer:
        assert answer["hits"] == expected["body"]["hits"]


def ours_of(request: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the recorded request, adapted to our fields: dates are `date`, and every field is sortable."""
    body = request["body"]
    if name == "search_facets_200":
        body = {**body, "sort": ["date:desc"]}
    if name == "search_sort_400":
        body = {**body, "sort": ["many:asc"]}
    return {**request, "body": body}
