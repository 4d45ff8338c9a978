"""Clicks on results."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from app.apidoc.openapi import ApiBlueprint
from app.clock import now
from app.errors import ErrorCode
from app.runtime import runtime
from app.services.access.callers import Caller
from app.services.access.credentials import SiteRecord
from app.services.analytics.clicks import make_click
from app.services.indexing.stored_documents import sites_with_document
from app.services.sites import site_not_found
from app.web.admission import current_admission
from app.web.auth import ANY_KEY_OR_ENGINE_KEY
from app.web.callers import current_caller, current_visitor
from app.web.policy import OperationPolicy
from schemas.base import SuccessSchema
from schemas.clicks import ClickSchema

blp = ApiBlueprint("clicks", __name__, description="Clicks on results, for analytics.")


@blp.route("/api/v1/click", methods=["POST"])
@blp.operation("reportClick", OperationPolicy(ANY_KEY_OR_ENGINE_KEY), errors=(ErrorCode.SITE_NOT_FOUND,), body=True)
@blp.arguments(ClickSchema)
@blp.response(200, SuccessSchema)
def report_click(fields: dict[str, Any]) -> dict[str, Any]:
    """Report a click on a result, for analytics. Repeating the same click has no effect.

    A click on a hit of a collection counts for the collection, and for the hit's site.
    """
    current_runtime = runtime()
    site = _site_of_key(current_caller())
    visitor = current_visitor(current_admission(), site.id, fields["session_id"])
    click = make_click(
        current_runtime.settings.secret_key,
        site.id,
        fields["id"],
        query_id=fields["query_id"],
        query=fields["query"],
        session_id=fields["session_id"],
        position=fields["position"],
        moment=now(),
        anchor=fields["anchor"],
        visitor=visitor.number,
        channel=visitor.channel,
    )
    if click is not None:
        for site_id in _clicked_sites(site, fields["site_id"], fields["id"]):
            current_runtime.events.record(replace(click, site_id=site_id))
    return {"success": True}


def _site_of_key(caller: Caller) -> SiteRecord:
    if caller.site is not None:
        return caller.site
    assert caller.key is not None, "the operation is for keys"
    return caller.account.sites[caller.key.site_id]


def _clicked_sites(site: SiteRecord, site_id: int | None, document_id: str) -> list[int]:
    """Return the IDs that a click counts for: the key's site, or a collection and the site of the hit.

    Raises:
        ApiError: 404 for a site that the key does not search.
    """
    if site.searched_sites is None:
        if site_id not in (None, site.id):
            raise site_not_found()
        return [site.id]
    searched_ids = [searched.record.id for searched in site.searched_sites]
    if site_id is not None:
        if site_id not in searched_ids:
            raise site_not_found()
        return [site.id, site_id]
    with runtime().database.read() as session:
        having = sites_with_document(session, searched_ids, document_id)
    return [site.id, *[searched_id for searched_id in searched_ids if searched_id in having][:1]]
