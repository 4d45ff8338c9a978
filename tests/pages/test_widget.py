"""How the search box to paste is served. What it does is in tests/browser."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from flask import Flask

from app.pages.widget import RESULTS_SCRIPT, SCRIPT

pytestmark = pytest.mark.parametrize(("path", "script"), [("/widget.js", SCRIPT), ("/widget-results.js", RESULTS_SCRIPT)])


def test_the_script_may_be_loaded_by_any_page_and_kept_for_a_while(app: Flask, path: str, script: Path) -> None:
    response = app.test_client().get(path, headers={"Origin": "https://museum.example.com"})
    assert response.status_code == 200
    assert response.content_type == "text/javascript; charset=utf-8"
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert response.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert "Access-Control-Allow-Credentials" not in response.headers
    assert "Set-Cookie" not in response.headers
    assert response.headers["Cache-Control"] == "public, max-age=300"
    assert response.data == script.read_bytes()


def test_a_kept_script_is_not_sent_again(app: Flask, path: str, script: Path) -> None:
    client = app.test_client()
    tag = client.get(path).headers["ETag"]
    response = client.get(path, headers={"If-None-Match": tag})
    assert (response.status_code, response.data) == (304, b"")
    assert client.get(path, headers={"If-None-Match": '"another"'}).status_code == 200


def test_the_script_is_small_on_its_way(app: Flask, path: str, script: Path) -> None:
    response = app.test_client().get(path, headers={"Accept-Encoding": "gzip"})
    assert gzip.decompress(response.data) == script.read_bytes()
    assert len(response.data) <= 25_000


def test_the_script_makes_no_html_of_text(path: str, script: Path) -> None:
    text = script.read_text()
    for dangerous in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "document.cookie"):
        assert dangerous not in text
