"""Adds sources to the database for tests."""

from __future__ import annotations

import secrets
from typing import Any

from flask import Flask

from app.clock import now
from app.models import Source
from tests.callers import Tenant


def add_source(app: Flask, tenant: Tenant, **values: Any) -> Source:
    """Add a source of the tenant's site to the database."""
    source = Source(
        **{
            "id": f"src_{secrets.token_hex(8)}",
            "site_id": tenant.site_id,
            "kind": "website",
            "url": f"https://example.com/{secrets.token_hex(4)}",
            "schedule": "none",
            "include": [],
            "exclude": [],
            "selectors": {},
            "fields": [],
            "headers": {},
            "created_at": now(),
            "updated_at": now(),
            **values,
        }
    )
    with app.extensions["runtime"].database.write() as session:
        session.add(source)
    return source
