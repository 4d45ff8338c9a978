"""A customer's whole journey without JavaScript."""

from __future__ import annotations

import re

from flask import Flask

from tests.callers import PASSWORD, ApiClient, page
from tests.pages.people import register_person


def test_whole_journey_works_without_javascript(app: Flask) -> None:
    ann = register_person(app, "ann@example.com")
    assert "Make your first site searchable" in ann.page.text
    ann.follow("Add a site")
    ann.press("Add site", name="Museum", url="https://museum.example.com")
    site = ann.path.partition("/sources")[0]
    ann.go("/dashboard")
    assert "Next: add your content" in ann.page.text
    ann.follow("Add pages to Museum")
    ann.follow("Add a source")
    ann.follow("The API Send pages from your server.")
    ann.follow("Create a private key")
    ann.press("Create key", name="Server", type="private")
    token = re.search(r"svc_prv_\w{38}", ann.page.text)
    assert token is not None
    program = ApiClient(app, token[0])
    assert program.post("/api/v1/index/bulk", json={"documents": [page(1), page(2)]}).status_code == 200
    ann.go(site)
    ann.follow("Try the search")
    ann.press("Search", q="content")
    assert "2 results" in ann.page.text
    ann.press("Search", q="zeppelin")
    assert "No results for" in ann.page.text

    for q in ("content", "zeppelin"):
        assert program.get(f"/v1/search?q={q}").status_code == 200
    app.extensions["runtime"].events.flush()
    ann.go(site)
    ann.follow("View analytics")
    without_results = ann.page.one("section", aria_labelledby="zero_result_queries-title")
    assert [row.text for row in without_results.one("tbody").all("tr")] == ["zeppelin1"]
    ann.press("Show", site_id="", period="7d")
    assert [len(figure.one("tbody").all("tr")) for figure in ann.page.all("figure")] == [24]
    assert "2 searches in 1 day, 1 of them without results" in ann.page.text

    ann.go(site)
    ann.press("Pause site")
    assert program.get("/v1/search?q=content").get_json()["error"] == "site_inactive"
    ann.go("/profile/edit")
    ann.press("Delete my account and all its data", password=PASSWORD, reason="Only a test")
    assert ann.notice.startswith("Your account and all its data have been deleted")
    assert program.get("/sites").status_code == 401
