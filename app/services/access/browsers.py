"""Names of browsers, as people know them."""

from __future__ import annotations

import re

_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("CriOS/", "Chrome"),
    ("Safari/", "Safari"),
)
"""What a browser calls itself; who imitates another comes before that one."""
_SYSTEMS = (
    ("Windows", "Windows"),
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)
_PRODUCT = re.compile(r"[\w.-]{1,40}", re.ASCII)


def browser_name(user_agent: str) -> str:
    """Browser and system of a ``User-Agent``, such as ``Firefox on Windows``; of a program, its name; else empty."""
    browser = next((name for mark, name in _BROWSERS if mark in user_agent), "")
    if not browser:
        product = _PRODUCT.match(user_agent)
        return "" if product is None else product[0]
    system = next((name for mark, name in _SYSTEMS if mark in user_agent), "")
    return f"{browser} on {system}" if system else browser
