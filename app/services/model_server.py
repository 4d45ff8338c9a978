"""What clients of servers with OpenAI's API have in common."""

from __future__ import annotations

import requests
from requests.auth import AuthBase


class BearerKey(AuthBase):
    """Sends the configured key, if any, and never a password from ``.netrc``."""

    def __init__(self, key: str):
        self._key = key

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._key:
            request.headers["Authorization"] = f"Bearer {self._key}"
        return request


def root_cause(error: BaseException) -> BaseException:
    """Return the root cause of an error. The outer errors contain the URL, which may contain a secret."""
    while error.__context__ is not None:
        error = error.__context__
    return error
