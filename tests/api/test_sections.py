"""Sections of documents: sent explicitly or found in markup, stored, listed, and linked from hits."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.validation.documents import MAX_SECTIONS
from tests.callers import Tenant, page
from tests.gateway.callers import Gateway
from tests.responses import assert_error

BULK, LIST = "/api/v1/index/bulk", "/api/v1/documents"
CONTENT = "Opening words.\n\nTickets\n\nBuy them at the pier.\n\nRefunds\n\nWe pay back a cancelled cruise."
TICKETS = {"anchor": "tickets", "title": "Tickets", "level": 2, "start": 16}
REFUNDS = {"anchor": "refunds", "title": "Refunds", "level": 3, "start": 48}
HARBOR = page("harbor", title="Harbor", content=CONTENT, url="/harbor", sections=[TICKETS, REFUNDS])


def stored(tenant: Tenant, id: str = "page-harbor") -> dict[str, Any]:
    (document,) = tenant.private.get(LIST, query_string={"id": id}).get_json()["documents"]
    kept: dict[str, Any] = document
    return kept


def sections(tenant: Tenant, q: str, **parameters: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tenant.find(q, **{"sections": 3, **parameters})["hits"][0]["sections"]
    return found


def test_hit_contains_its_matching_sections_with_urls(tenant: Tenant) -> None:
    tenant.index(HARBOR)

    assert sections(tenant, "cancelled cruise") == [
        {"anchor": "refunds", "title": "Refunds", "path": ["Tickets"], "url": "/harbor#refunds"}
    ]
    assert sections(tenant, "refunds cruise", highlight="true")[0]["_formatted"] == {
        "title": "<em>Refunds</em>",
        "content": "We pay back a cancelled <em>cruise</em>.",
    }
    assert sections(tenant, "opening") == []


def test_sections_are_returned_only_on_request(tenant: Tenant) -> None:
    tenant.index(HARBOR)

    for parameters in ({}, {"sections": 0}, {"highlight": "true"}):
        assert "sections" not in tenant.find("refunds", **parameters)["hits"][0]
    posted = tenant.search.post("/v1/search", json={"q": "refunds", "sections": 1, "fields": ["title"]}).get_json()
    assert posted["results"]["hits"] == [
        {"id": "page-harbor", "title": "Harbor", "sections": [
            {"anchor": "refunds", "title": "Refunds", "path": ["Tickets"], "url": "/harbor#refunds"}]}
    ]  # fmt: skip


@pytest.mark.parametrize("value", ["6", "-1", "x", "1.0"])
def test_sections_parameter_out_of_range_returns_400(ann: Tenant, value: str) -> None:
    response = ann.search.get("/v1/search", query_string={"q": "x", "sections": value})

    assert_error(response, 400, "validation_failed")
    assert response.get_json()["details"][0]["field"] == "sections"


def test_gateway_returns_sections_with_custom_highlight_tags(tenant: Tenant) -> None:
    tenant.index(HARBOR)
    gateway = Gateway(tenant)

    (hit,) = gateway.search(
        "refunds", sections=2, attributesToHighlight=["*"], highlightPreTag="[", highlightPostTag="]"
    )["hits"]

    assert [(found["url"], found["_formatted"]["title"]) for found in hit["sections"]] == [
        ("/harbor#refunds", "[Refunds]")
    ]
    assert "sections" not in gateway.search("refunds")["hits"][0]
    assert gateway.send({"q": "refunds", "sections": 6}).get_json()["code"] == "invalid_search_sections"


def test_sections_round_trip_unchanged(tenant: Tenant) -> None:
    tenant.index(HARBOR)

    kept = stored(tenant)

    assert kept["sections"] == [TICKETS, REFUNDS]
    assert tenant.private.post(BULK, json={"documents": [kept]}).status_code == 200
    assert stored(tenant)["sections"] == [TICKETS, REFUNDS]


def test_patch_keeps_sections_unless_the_content_changes(tenant: Tenant) -> None:
    tenant.index(HARBOR)

    def patch(**fields: Any) -> None:
        response = tenant.private.call("PATCH", LIST, json={"documents": [{"id": "page-harbor", **fields}]})
        assert response.status_code == 200, response.get_json()

    patch(title="The harbor")
    assert stored(tenant)["sections"] == [TICKETS, REFUNDS]
    assert sections(tenant, "refunds")[0]["anchor"] == "refunds"
    patch(content=CONTENT, sections=[TICKETS])
    assert stored(tenant)["sections"] == [TICKETS]
    patch(content="All new.")
    assert "sections" not in stored(tenant)
    patch(sections=[{**TICKETS, "start": 0}])
    patch(sections=None)
    assert "sections" not in stored(tenant)


def test_patch_with_sections_beyond_the_content_is_rejected(tenant: Tenant) -> None:
    tenant.index(HARBOR)

    changed = {"id": "page-harbor", "sections": [{**TICKETS, "start": 5_000}]}
    response = tenant.private.call("PATCH", LIST, json={"documents": [changed]})

    assert_error(response, 400, "validation_failed")
    assert response.get_json()["details"][0]["code"] == "invalid_section"
    assert stored(tenant)["sections"] == [TICKETS, REFUNDS]


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param([{**TICKETS, "anchor": ""}], id="empty anchor"),
        pytest.param([{**TICKETS, "anchor": "a b"}], id="blank in the anchor"),
        pytest.param([{**TICKETS, "anchor": "a\u0085"}], id="control in the anchor"),
        pytest.param([{**TICKETS, "anchor": "a" * 201}], id="long anchor"),
        pytest.param([{**TICKETS, "anchor": 5}], id="number for the anchor"),
        pytest.param([TICKETS, {**REFUNDS, "anchor": "tickets"}], id="duplicate anchor"),
        pytest.param([{**TICKETS, "title": ""}], id="empty title"),
        pytest.param([{**TICKETS, "title": " "}], id="blank title"),
        pytest.param([{**TICKETS, "title": "a" * 501}], id="long title"),
        pytest.param([{**TICKETS, "level": 0}], id="level 0"),
        pytest.param([{**TICKETS, "level": 7}], id="level 7"),
        pytest.param([{**TICKETS, "level": True}], id="boolean for the level"),
        pytest.param([{**TICKETS, "level": 2.0}], id="fraction for the level"),
        pytest.param([{**TICKETS, "start": -1}], id="negative start"),
        pytest.param([{**TICKETS, "start": len(CONTENT) + 1}], id="start beyond the content"),
        pytest.param([REFUNDS, TICKETS], id="out of order"),
        pytest.param([{**TICKETS, "more": 1}], id="unknown member"),
        pytest.param([{"anchor": "a", "title": "A", "level": 1}], id="no start"),
        pytest.param([TICKETS, "text"], id="list with a string"),
        pytest.param("here", id="string"),
        pytest.param(7, id="number"),
        pytest.param(True, id="boolean"),
        pytest.param(TICKETS, id="object"),
        pytest.param([1, 2], id="numbers"),
        pytest.param(["text", 1], id="strings and numbers"),
        pytest.param([[TICKETS]], id="list in a list"),
        pytest.param([None], id="list with null"),
        pytest.param([{**TICKETS, "anchor": str(at)} for at in range(MAX_SECTIONS + 1)], id="too many"),
    ],
)  # fmt: skip
def test_document_with_an_invalid_section_is_rejected(ann: Tenant, wrong: list[Any]) -> None:
    response = ann.private.post(BULK, json={"documents": [page(1), {**HARBOR, "sections": wrong}]})

    assert_error(response, 400, "validation_failed")
    (problem,) = response.get_json()["details"]
    assert (problem["field"], problem["code"]) == ("documents[1].sections", "invalid_section")


def test_maximum_number_of_sections_with_equal_starts_is_accepted(tenant: Tenant) -> None:
    most = [{**TICKETS, "anchor": str(at), "start": len(CONTENT)} for at in range(MAX_SECTIONS)]

    tenant.index({**HARBOR, "sections": most})

    assert len(stored(tenant)["sections"]) == MAX_SECTIONS


def test_list_of_strings_named_sections_is_a_custom_field(tenant: Tenant) -> None:
    tenant.index(page(1, sections=["north", "south"]), HARBOR)

    assert tenant.found_ids("page", filters=tenant.equals("sections", "north")) == ["page-1"]
    assert tenant.find("page", facets="sections")["facetDistribution"]["sections"] == {"north": 1, "south": 1}


def test_patch_with_invalid_sections_is_rejected(tenant: Tenant) -> None:
    tenant.index(HARBOR)
    for wrong in ("here", 7, TICKETS):
        change = {"documents": [{"id": "page-harbor", "sections": wrong}]}
        problem = assert_error(tenant.private.call("PATCH", LIST, json=change), 400, "validation_failed")
        assert problem["details"][0]["code"] == "invalid_section"
    assert stored(tenant)["sections"] == [TICKETS, REFUNDS]


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        ({"facets": "sections"}, "invalid_facet"),
        ({"sort": "sections"}, "invalid_sort"),
        ({"filters": "sections = tickets"}, "invalid_filter"),
    ],
)
def test_sections_cannot_be_used_as_filter_facet_or_sort_key(
    tenant: Tenant, parameters: dict[str, str], code: str
) -> None:
    tenant.index(HARBOR)
    if code == "invalid_filter":
        parameters = {"filters": tenant.equals("sections", "tickets")}

    assert_error(tenant.search.get("/v1/search", query_string={"q": "x", **parameters}), 400, code)


def test_sections_are_not_counted_as_documents_or_facets(tenant: Tenant) -> None:
    tenant.index(HARBOR)

    assert tenant.browser.get(f"/sites/{tenant.site_id}").get_json()["site"]["indexed_pages"] == 1
    assert tenant.find("harbor", facets="*")["facetDistribution"].keys() <= {"author", "date", "id", "excerpt"}


@pytest.mark.parametrize(
    ("markup", "content"),
    [
        ("html", "<p>Opening.</p><div id=tickets><h2>Tickets <a href='#tickets'>¶</a></h2><p>At the pier.</div>"),
        ("markdown", "Opening.\n\n## Tickets\n\nAt the pier.\n"),
    ],
)  # fmt: skip
def test_markup_headings_become_sections(tenant: Tenant, markup: str, content: str) -> None:
    document = page("harbor", title="Harbor", url="/harbor?from=list#top", content=content)

    response = tenant.private.post(f"{BULK}?format={markup}", json={"documents": [document]})

    assert response.status_code == 200, response.get_json()
    assert stored(tenant)["sections"] == [{"anchor": "tickets", "title": "Tickets", "level": 2, "start": 10}]
    assert [found["url"] for found in sections(tenant, "pier")] == ["/harbor?from=list#tickets"]


def test_explicit_sections_take_precedence_over_markup(tenant: Tenant) -> None:
    own = {"anchor": "own", "title": "Own", "level": 1, "start": 0}
    document = page("harbor", content="<h2 id=a>Tickets</h2>", sections=[own])

    assert tenant.private.post(f"{BULK}?format=html", json={"documents": [document]}).status_code == 200

    assert stored(tenant)["sections"] == [own]


def test_sections_survive_a_reindex(tenant: Tenant) -> None:
    tenant.index(HARBOR)

    result = tenant.app.test_cli_runner().invoke(args=["search", "reindex", "--site", str(tenant.site_id)])

    assert result.exit_code == 0, result.output
    assert sections(tenant, "refunds")[0]["anchor"] == "refunds"
