"""How the search box to paste is served. What it does is in tests/browser."""

from __future__ import annotations

from flask import Flask

from app.pages.widget import SCRIPT


def test_the_script_may_be_loaded_by_any_page_and_kept_for_a_while(app: Flask) -> None:
    response = app.test_client().get("/widget.js", headers={"Origin": "https://museum.example.com"})
    assert response.status_code == 200
    assert response.content_type == "text/javascript; charset=utf-8"
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert response.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert "Access-Control-Allow-Credentials" not in response.headers
    assert "Set-Cookie" not in response.headers
    assert response.headers["Cache-Control"] == "public, max-age=300"
    assert response.data == SCRIPT.read_bytes()


def test_a_kept_script_is_not_sent_again(app: Flask) -> None:
    client = app.test_client()
    tag = client.get("/widget.js").headers["ETag"]
    response = client.get("/widget.js", headers={"If-None-Match": tag})
    assert (response.status_code, response.data) == (304, b"")
    assert client.get("/widget.js", headers={"If-None-Match": '"another"'}).status_code == 200


def test_the_script_is_small_and_makes_no_html_of_text() -> None:
    text = SCRIPT.read_text()
    assert len(text.encode()) < 24_000
    for dangerous in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "localStorage",
        "document.cookie",
    ):
        assert dangerous not in text
