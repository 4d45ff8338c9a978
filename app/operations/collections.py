"""Creating collections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.models import Site
from app.operations import changing
from app.operations.keys import add_box_key
from app.runtime import Runtime
from app.services import collections
from app.services.access.callers import Caller


def create_collection(
    runtime: Runtime, caller: Caller, fields: Mapping[str, Any], *, with_box_key: bool = False
) -> Site:
    """Create a collection.

    Args:
        fields: ``name`` and ``sites``.
        with_box_key: Whether to create a public key for its search box, unless the plan allows no more keys.

    Raises:
        ApiError: 404 for a site of another account; 400 for an invalid filter; 403 at the limit.
    """
    engine = runtime.engines.default.identity
    with changing(runtime, caller) as session:
        collection = collections.create_collection(session, caller.account.id, engine, fields)
        if with_box_key:
            add_box_key(session, runtime, caller, collection.id, of_collection=True)
        return collection
