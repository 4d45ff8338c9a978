"""Learning from clicks: how visitors' clicks change the order of results."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine

from app.jobs import Jobs
from tests.callers import ApiClient, Tenant, page
from tests.gateway.callers import Gateway
from tests.responses import assert_error, assert_ok

TITLES = ("Harbour", "Harbour harbour", "Harbour master", "Harbour tours and their timetables in summer")


@pytest.fixture
def harbour(tenant: Tenant) -> Tenant:
    """Index four pages that match the same word."""
    tenant.index(*(page(number, title=title) for number, title in enumerate(TITLES, 1)))
    return tenant


def learn(tenant: Tenant, *options: str) -> str:
    tenant.app.extensions["runtime"].events.flush()
    result = tenant.app.test_cli_runner().invoke(args=["clicks", "learn", *options])
    assert result.exit_code == 0, result.output
    return str(result.output)


def switch(tenant: Tenant, **settings: Any) -> None:
    assert_ok(
        tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json={"learn_from_clicks": True, **settings})
    )


def click(
    client: ApiClient, document_id: str, position: int, *, address: str, session: str = "one", query: str = "harbour"
) -> None:
    fields = {"query": query, "id": document_id, "position": position, "session_id": f"{session} at {address}"}
    assert_ok(client.post("/api/v1/click", json=fields, environ_overrides={"REMOTE_ADDR": address}))


def click_last(tenant: Tenant, before: list[str], *, visitors: int = 20) -> None:
    for number in range(visitors):
        click(tenant.public, before[-1], len(before), address=f"198.51.100.{number}")


def test_frequently_clicked_last_hit_moves_up_three_positions(harbour: Tenant) -> None:
    before = harbour.found_ids("harbour")
    switch(harbour)
    click_last(harbour, before)
    assert harbour.found_ids("harbour") == before

    learn(harbour)

    assert harbour.found_ids("Harbour ") == [before[-1], *before[:-1]]
    assert Gateway(harbour).ids("harbour") == [before[-1], *before[:-1]]
    assert harbour.found_ids("harbour", limit=2, page=2) == before[1:3]
    assert harbour.found_ids("harbour master")[0] == "page-3"


def test_clicks_have_no_effect_while_learning_is_off(harbour: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    before = harbour.found_ids("harbour")
    click_last(harbour, before)

    assert "0 sites" in learn(harbour)

    monkeypatch.setattr("app.services.search.search.learned_page", None)
    monkeypatch.setattr("app.services.search_settings.ClickLessons", None)
    assert harbour.found_ids("harbour") == before


def test_clicks_of_many_sessions_from_one_ip_address_have_no_effect(harbour: Tenant) -> None:
    before = harbour.found_ids("harbour")
    switch(harbour)
    for number in range(20):
        click(harbour.public, before[-1], 4, address="198.51.100.7", session=f"session-{number}")

    learn(harbour)

    assert harbour.found_ids("harbour") == before


def test_repeated_clicks_of_a_visitor_count_once(harbour: Tenant) -> None:
    before = harbour.found_ids("harbour")
    switch(harbour)
    for number in range(4):
        for session in ("one", "two", "three"):
            click(harbour.public, before[-1], 4, address=f"198.51.100.{number}", session=session)

    learn(harbour)

    assert harbour.found_ids("harbour") == before


def test_clicks_from_one_ipv6_network_count_once(harbour: Tenant) -> None:
    before = harbour.found_ids("harbour")
    switch(harbour)
    for number in range(40):
        click(harbour.public, before[-1], 4, address=f"2001:db8:7:{number:x}::{number}")

    learn(harbour)
    assert harbour.found_ids("harbour") == before

    for number in range(10):
        click(harbour.public, before[-1], 4, address=f"2001:db8:{number:x}::1")
    learn(harbour)
    assert harbour.found_ids("harbour") == [before[-1], *before[:-1]]


def test_clicks_with_forged_forwarding_headers_have_no_effect(harbour: Tenant) -> None:
    before = harbour.found_ids("harbour")
    switch(harbour)
    fields = {"query": "harbour", "id": before[-1], "position": 4}
    for number in range(20):
        headers = {"X-Forwarded-For": f"198.51.100.{number}", "Forwarded": f"for=198.51.100.{number}"}
        assert_ok(harbour.public.post("/api/v1/click", json=fields, headers=headers))

    learn(harbour)

    assert harbour.found_ids("harbour") == before


def test_clicks_of_many_visitors_with_one_query_id_count_once(harbour: Tenant) -> None:
    before = harbour.found_ids("harbour")
    switch(harbour)
    query_id = harbour.find("harbour")["query_id"]
    for number in range(20):
        fields = {"query_id": query_id, "id": before[-1], "position": 4}
        overrides = {"REMOTE_ADDR": f"198.51.100.{number}"}
        assert_ok(harbour.public.post("/api/v1/click", json=fields, environ_overrides=overrides))

    learn(harbour)

    assert harbour.found_ids("harbour") == before


def test_clicks_reported_with_a_private_key_have_no_effect(harbour: Tenant) -> None:
    before = harbour.found_ids("harbour")
    switch(harbour)
    for _ in range(20):
        assert_ok(harbour.private.post("/api/v1/click", json={"query": "harbour", "id": before[-1], "position": 4}))

    learn(harbour)

    assert harbour.found_ids("harbour") == before


def test_few_clicks_at_forged_positions_do_not_outweigh_many_clicks(harbour: Tenant) -> None:
    before = harbour.found_ids("harbour")
    switch(harbour)
    for number in range(100):
        click(harbour.public, before[0], 1, address=f"203.0.113.{number}")
    for number in range(10):
        click(harbour.public, before[-1], 1_000_000, address=f"198.51.100.{number}")
        click(harbour.public, "no such page", 1_000_000, address=f"198.51.100.{number}")

    learn(harbour)

    assert harbour.found_ids("harbour") == before


def test_learned_clicks_can_be_listed_by_the_account_only(harbour: Tenant, stranger: Tenant) -> None:
    before = harbour.found_ids("harbour")
    path = f"/sites/{harbour.site_id}/learned-clicks"
    switch(harbour)
    assert assert_ok(harbour.private.get(path)) == {"queries": []}
    click_last(harbour, before)
    learn(harbour)

    assert assert_ok(harbour.private.get(path)) == {
        "queries": [{"query": "harbour", "documents": [{"id": before[-1], "gain": 3.0}]}]
    }
    assert_error(stranger.private.get(path), 404, "site_not_found")
    shown = harbour.browser.get(f"/api/analytics?site_id={harbour.site_id}", headers={"Accept": "text/html"})
    assert f'<a href="/sites/{harbour.site_id}/try?q=harbour">harbour</a>: 1 page moved up' in shown.get_data(
        as_text=True
    )


def test_page_matching_only_some_words_does_not_move_up(harbour: Tenant) -> None:
    switch(harbour)
    before = harbour.found_ids("harbour master")
    last = before[-1]
    for number in range(20):
        click(harbour.public, last, 4, query="harbour master", address=f"198.51.100.{number}")

    learn(harbour)

    assert harbour.found_ids("harbour master") == before


def test_sorted_and_pinned_results_keep_their_order(harbour: Tenant) -> None:
    before = harbour.found_ids("harbour")
    by_title = harbour.found_ids("harbour", sort="title:desc")
    switch(harbour)
    click_last(harbour, before)
    learn(harbour)

    assert harbour.found_ids("harbour", sort="title:desc") == by_title
    switch(harbour, pinned=[{"query": "harbour", "ids": [before[1]]}])
    assert harbour.found_ids("harbour") == [before[1], before[0], *before[2:]]


def test_deleting_learned_clicks_restores_the_order_permanently(harbour: Tenant) -> None:
    before = harbour.found_ids("harbour")
    switch(harbour)
    click_last(harbour, before)
    learn(harbour)

    assert assert_ok(harbour.private.delete(f"/sites/{harbour.site_id}/learned-clicks")) == {"success": True}

    assert harbour.found_ids("harbour") == before
    learn(harbour)
    assert harbour.found_ids("harbour") == before


def test_other_accounts_cannot_delete_learned_clicks(harbour: Tenant, stranger: Tenant) -> None:
    assert_error(stranger.private.delete(f"/sites/{harbour.site_id}/learned-clicks"), 404, "site_not_found")


def test_settings_preview_shows_the_effect_of_clicks(harbour: Tenant) -> None:
    before = harbour.found_ids("harbour")
    click_last(harbour, before)
    harbour.app.extensions["runtime"].events.flush()

    def preview(**settings: Any) -> dict[str, Any]:
        body = {"settings": settings, "queries": ["Harbour"]}
        answer = assert_ok(harbour.private.post(f"/sites/{harbour.site_id}/search-settings/preview", json=body))
        (told,) = answer["queries"]
        return dict(told)

    def ids(documents: list[dict[str, str]]) -> list[str]:
        return [document["id"] for document in documents]

    wanted = preview(learn_from_clicks=True)
    assert (ids(wanted["before"]), ids(wanted["after"])) == (before, [before[-1], *before[:-1]])
    assert not preview()["changed"]

    switch(harbour)
    learn(harbour)
    assert not preview(learn_from_clicks=True)["changed"]
    off = preview()
    assert (ids(off["before"]), ids(off["after"])) == ([before[-1], *before[:-1]], before)


def test_explanations_show_moves_caused_by_clicks(harbour: Tenant) -> None:
    before = harbour.found_ids("harbour")
    switch(harbour)
    click_last(harbour, before)
    learn(harbour)

    answer = assert_ok(harbour.private.get("/v1/search?q=harbour&explain=true"))
    told = {hit["id"]: hit["_explain"].get("clicks") for hit in answer["results"]["hits"]}

    assert told == {
        before[-1]: {"moved_up": 3, "gain": 3.0},
        **{id: {"moved_up": -1, "gain": 0.0} for id in before[:-1]},
    }


def test_clicks_do_not_move_results_when_a_rule_pins(harbour: Tenant) -> None:
    before = harbour.found_ids("harbour")
    rule = {"id": "first", "when": {"query": "harbour", "match": "is"}, "do": {"pin": [before[1]]}}
    switch(harbour, rules=[rule])
    click_last(harbour, before)
    learn(harbour)

    assert harbour.found_ids("harbour") == [before[1], before[0], *before[2:]]
    switch(harbour)
    assert harbour.found_ids("harbour") == [before[-1], *before[:-1]]


@pytest.fixture
def jobs(harbour: Tenant) -> Iterator[Jobs]:
    jobs = Jobs(harbour.app.extensions["runtime"])
    yield jobs
    jobs._stopping.set()


def test_clicks_are_learned_once_a_night(harbour: Tenant, jobs: Jobs) -> None:
    (job,) = (job for job in jobs.jobs if job.name == "click-lessons")
    before = harbour.found_ids("harbour")
    switch(harbour)
    part = harbour.app.extensions["runtime"]
    job.run()
    click_last(harbour, before)
    part.events.flush()

    job.run()
    assert harbour.found_ids("harbour") == before

    with time_machine.travel(datetime.now(UTC) + timedelta(days=1)):
        job.run()
    assert harbour.found_ids("harbour") == [before[-1], *before[:-1]]


def test_learn_command_rejects_sites_without_learning(harbour: Tenant) -> None:
    switch(harbour)

    assert learn(harbour, "--site", str(harbour.site_id), "--json") == f'{{"learned":{{"{harbour.site_id}":0}}}}\n'
    result = harbour.app.test_cli_runner().invoke(args=["clicks", "learn", "--site", "999999"])
    assert result.exit_code == 1
    assert "does not learn from clicks" in result.output
