"""Cookies that a site sets while it is crawled."""

from __future__ import annotations

from email.message import Message
from http.cookiejar import CookieJar
from threading import Lock
from urllib.request import Request

_MOST_COOKIES = 100
_MOST_BYTES = 8_192


class Cookies:
    """The cookies of one run, kept in memory: at most 100, and at most 8 KiB of them go with one request."""

    def __init__(self) -> None:
        self._jar = CookieJar()
        self._lock = Lock()

    def header(self, url: str) -> str:
        """The value of the header ``Cookie`` for a request; empty if no cookie belongs to it."""
        request = Request(url)  # noqa: S310  Nothing is opened.
        with self._lock:
            self._jar.add_cookie_header(request)
        cookies = str(request.get_header("Cookie", ""))
        return cookies if len(cookies) <= _MOST_BYTES else ""

    def keep(self, url: str, set_cookies: list[str]) -> None:
        """Keep the cookies of an answer.

        Args:
            url: The address that answered.
            set_cookies: The values of its headers ``Set-Cookie``.
        """
        if not set_cookies:
            return
        headers = Message()
        for value in set_cookies[:_MOST_COOKIES]:
            headers["Set-Cookie"] = value
        with self._lock:
            self._jar.extract_cookies(_Answer(headers), Request(url))  # type: ignore[arg-type]  # noqa: S310
            if len(self._jar) > _MOST_COOKIES:
                self._jar.clear()


class _Answer:
    """As much of an answer as :meth:`CookieJar.extract_cookies` reads."""

    def __init__(self, headers: Message):
        self._headers = headers

    def info(self) -> Message:
        return self._headers
