"""One click on an analytics page removes a query from the suggestions."""

from __future__ import annotations

import pytest

from tests.api.test_suggestions import texts
from tests.callers import Tenant, page
from tests.pages.people import Person, filled

OVERVIEW = "/api/analytics?site_id={site}&period=7d"
LIST = OVERVIEW + "&list=top_queries"
QUERY = "/api/analytics/query?site_id={site}&period=7d&q=opening+hours"


@pytest.fixture
def museum(tenant: Tenant) -> Tenant:
    """A site with a query that appears in suggestions."""
    tenant.index(page(1, title="Hours of opening"))
    for number in range(3):
        tenant.find("Opening hours", session_id=f"visitor-{number}")
    tenant.app.extensions["runtime"].events.flush()
    assert texts(tenant.search, "opening ho") == ["opening hours", "Hours of opening"]
    return tenant


def settings(tenant: Tenant) -> list[str]:
    answer = tenant.private.get(f"/sites/{tenant.site_id}/search-settings").get_json()
    hidden: list[str] = answer["settings"]["suggestions_hidden"]
    return hidden


@pytest.mark.parametrize("address", [OVERVIEW, LIST, QUERY])
def test_never_suggest_button_hides_the_query_from_suggestions(person: Person, museum: Tenant, address: str) -> None:
    person.go(address.format(site=museum.site_id))

    person.press("Never suggest")

    assert person.notice == "The search box no longer suggests this query."
    assert "Never suggested" in person.page.text
    assert not [button for button in person.page.all("button") if button.text == "Never suggest"]
    assert settings(museum) == ["opening hours"]
    assert texts(museum.search, "opening ho") == ["Hours of opening"]


def test_hiding_a_suggestion_twice_is_harmless_and_a_full_list_returns_400(person: Person, museum: Tenant) -> None:
    person.go(QUERY.format(site=museum.site_id))
    for _ in range(2):
        assert person.send("Never suggest").status_code == 303
    assert settings(museum) == ["opening hours"]

    full = [f"text {number}" for number in range(500)]
    museum.private.put(f"/sites/{museum.site_id}/search-settings", json={"suggestions_hidden": full})
    assert person.send("Never suggest").status_code == 400
    assert settings(museum) == full


def test_hiding_a_suggestion_requires_the_csrf_token_and_a_site_of_the_account(
    person: Person, museum: Tenant, stranger: Tenant
) -> None:
    person.go(QUERY.format(site=museum.site_id))
    form = {**filled(person.form("Never suggest")), "q": "theirs"}
    assert person.send("Never suggest", csrf_token="another").status_code == 403
    assert person.call("POST", f"/sites/{stranger.site_id}/hidden-suggestions", data=form).status_code == 404
    assert settings(museum) == settings(stranger) == []
