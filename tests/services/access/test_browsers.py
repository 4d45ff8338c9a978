"""Names of browsers in the list of sessions."""

from __future__ import annotations

import pytest

from app.services.access.sessions import browser_name

WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko)"


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        ("Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:150.0) Gecko/20100101 Firefox/150.0", "Firefox on Windows"),
        (f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {WEBKIT} Chrome/150.0 Safari/537.36", "Chrome on Windows"),
        (f"Mozilla/5.0 (Windows NT 10.0) {WEBKIT} Chrome/150.0 Safari/537.36 Edg/150.0", "Edge on Windows"),
        (f"Mozilla/5.0 (X11; Linux x86_64) {WEBKIT} Chrome/150.0 Safari/537.36 OPR/120.0", "Opera on Linux"),
        (f"Mozilla/5.0 (Linux; Android 16; K) {WEBKIT} Chrome/150.0 Mobile Safari/537.36", "Chrome on Android"),
        (f"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) {WEBKIT} Chrome/150.0 Safari/537.36", "Chrome on ChromeOS"),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
            "Version/19.0 Mobile/15E148 Safari/604.1",
            "Safari on iPhone",
        ),
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 "
            "Safari/605.1.15",
            "Safari on macOS",
        ),
        ("curl/8.14.1", "curl"),
        ("Firefox/1.0", "Firefox"),
        ("x" * 5000, "x" * 40),
        ("<script>alert(1)</script>", ""),
        ("", ""),
    ],
)
def test_browser_name_returns_a_short_readable_name_for_a_user_agent(user_agent: str, name: str) -> None:
    assert browser_name(user_agent) == name
