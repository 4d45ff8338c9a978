"""Hooks of schemathesis: half of the cases use existing objects, and each comes from a different IP address.

A request that gets 503 with ``Retry-After`` is repeated once, as a client should.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from typing import Any
from urllib.parse import quote

import requests
import schemathesis

OWN: dict[str, Any] = json.loads(os.environ["OWN_THINGS"])
DESTRUCTIVE = {"deleteSite", "deleteKey"}
LONGEST_QUERY = 6000
"""Maximum bytes of a query; gunicorn rejects request lines above 8190 bytes before the application."""
_numbers = itertools.count()


@schemathesis.serializer("application/x-ndjson", "text/csv")
def send_text(context: Any, value: Any) -> bytes:
    """Serialize lines unchanged."""
    return str(value).encode("utf-8", "replace")


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Insert existing IDs, and use a new IP address per request so that rate limits do not hide errors."""
    number = next(_numbers)
    address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    case.headers = {**(case.headers or {}), "X-Forwarded-For": address}
    path, query, body = (
        part if isinstance(part, dict) else {} for part in (case.path_parameters, case.query, case.body)
    )
    operation = case.operation.definition.raw.get("operationId")
    if str(path.get("site_id")) in OWN["sites"] and (operation in DESTRUCTIVE or path["site_id"] == OWN["site_id"]):
        path["site_id"] = 0  # The caller's sites must not be deleted during the run.
    longest = LONGEST_QUERY // max(len(query), 1)
    for name, value in query.items():
        if isinstance(value, str) and len(quote(value)) > longest:
            query[name] = value[: longest // len(quote("\U0001f50d"))]
        elif isinstance(value, list) and len(quote("".join(map(str, value)))) > longest:
            query[name] = value[:1]
    if number % 2 or operation in DESTRUCTIVE:
        return
    path.update({name: value for name, value in OWN["path"].items() if name in path})
    for part in (query, body):
        if "site_id" in part:
            part["site_id"] = OWN["site_id"]
    if isinstance(body.get("index"), str):
        body["index"] = OWN["index"]


@schemathesis.check
def not_a_lasting_server_error(context: Any, response: Any, case: Any) -> None:
    """Fail on 5xx responses, except a 503 that succeeds when repeated after its ``Retry-After``."""
    if response.status_code < 500:
        return
    failure = f"{case.method} {case.path}: {response.status_code} {response.text[:300]}"
    assert response.status_code == 503, failure
    time.sleep(min(int(response.headers["retry-after"][0]), 10))
    again = requests.Session().send(response.request, timeout=30)
    assert again.status_code < 500, f"{failure}; when repeated: {again.status_code} {again.text[:300]}"
