"""All operations of the service, from its routes and policies."""

from __future__ import annotations

import re
from typing import NamedTuple

from flask import Flask

from app.web.policy import SAFE_METHODS, OperationPolicy, policies
from tests.callers import Tenant


class Operation(NamedTuple):
    """A method at a path; of its placeholders, only the tenant's site, key, and index exist."""

    endpoint: str
    method: str
    rule: str
    path: str
    policy: OperationPolicy

    @property
    def writes(self) -> bool:
        return self.method not in SAFE_METHODS

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def operations(tenant: Tenant) -> list[Operation]:
    """Return all operations."""
    values = {"site_id": tenant.site_id, "key_id": tenant.keys["search"]["id"], "uid": tenant.site["index"]}
    declared = policies(tenant.app)
    return [
        Operation(
            rule.endpoint,
            method,
            rule.rule,
            re.sub(r"<(?:[^<>]+:)?(\w+)>", lambda found: str(values.get(found[1], 0)), rule.rule),
            declared[rule.endpoint],
        )
        for rule in tenant.app.url_map.iter_rules()
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
    ]


def policy_at(app: Flask, method: str, path: str) -> OperationPolicy:
    """Return the policy of ``method`` at ``path``."""
    endpoint, _ = app.url_map.bind("localhost").match(path.partition("?")[0], method)
    return policies(app)[endpoint]
