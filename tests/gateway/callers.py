"""Callers of the gateway in tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flask import Flask
from werkzeug.test import TestResponse

from tests.callers import ApiClient, Tenant


class VisitorClient(ApiClient):
    """Sends requests with one key from the IP addresses of many visitors."""

    def __init__(self, app: Flask, token: str | None, visitors: Iterator[str] | None = None):
        super().__init__(app, token)
        self._visitors = visitors

    def call(self, method: str, path: str, **kwargs: Any) -> TestResponse:
        if self._visitors is not None:
            kwargs["environ_overrides"] = {"REMOTE_ADDR": next(self._visitors)}
        return super().call(method, path, **kwargs)


class Gateway:
    """Calls the gateway as a page does, with the values from client-info.

    Args:
        kind: The kind of service key for requesting client-info.
        field: The field of client-info with the engine key to use.
        visitors: The IP address of each request; by default, all requests come from one address.
    """

    def __init__(
        self,
        tenant: Tenant,
        kind: str = "public",
        field: str = "engine_public_key",
        visitors: Iterator[str] | None = None,
    ):
        info = tenant.client(kind).get("/v1/client-info").get_json()
        self.index: str = info["index"]
        self.token: str = info[field]
        self.client = VisitorClient(tenant.app, self.token, visitors)
        self.nobody = VisitorClient(tenant.app, None, visitors)

    def send(self, body: Any = None, *, index: str | None = None, **kwargs: Any) -> TestResponse:
        """Search by POST."""
        wish = {"json": {} if body is None else body} if "data" not in kwargs else {}
        return self.client.post(f"/engine/indexes/{index or self.index}/search", **wish, **kwargs)

    def search(self, q: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Search by POST, assert success, and return the response body."""
        response = self.send({**({} if q is None else {"q": q}), **parameters})
        assert response.status_code == 200, response.get_json()
        answer: dict[str, Any] = response.get_json()
        return answer

    def get(self, **parameters: Any) -> TestResponse:
        """Search by GET."""
        return self.client.get(f"/engine/indexes/{self.index}/search", query_string=parameters)

    def multi(self, *queries: dict[str, Any]) -> TestResponse:
        """Send several searches, of its own index unless a query has another."""
        return self.client.post(
            "/engine/multi-search", json={"queries": [{"indexUid": self.index, **query} for query in queries]}
        )

    def facet(self, **body: Any) -> TestResponse:
        """Search for values of a facet."""
        return self.client.post(f"/engine/indexes/{self.index}/facet-search", json=body)

    def ids(self, q: str | None = None, **parameters: Any) -> list[str]:
        """Return the IDs of the hits, best first."""
        return [hit["id"] for hit in self.search(q, **parameters)["hits"]]


def assert_engine_error(response: TestResponse, status: int, code: str) -> dict[str, Any]:
    """Assert that the response is this error. Returns its body."""
    assert response.status_code == status, f"{response.status_code}: {response.get_data(as_text=True)[:500]}"
    body: dict[str, Any] = response.get_json()
    assert body["code"] == code, body
    return body


def used_today(tenant: Tenant) -> int:
    """Return today's number of searches from client-info."""
    return int(tenant.private.get("/v1/client-info").get_json()["limits"]["used_today"])
