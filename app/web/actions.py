"""What a caller does with sites, keys and the profile: each action once, for the JSON API and for the pages."""

from __future__ import annotations

from collections.abc import Set
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

from flask import request
from sqlalchemy.orm import Session

from app.clock import now
from app.errors import ApiError, ErrorCode, field_error
from app.importers.column_map import read_column_map
from app.importers.formats import read_file
from app.importers.records import ByteStream, UnreadableFile
from app.models import Member, Site
from app.runtime import runtime
from app.services import sites
from app.services.access import keys
from app.services.access.credentials import SiteRecord, credential_change
from app.services.access.keys import KeyView
from app.services.accounts import accounts, members
from app.services.analytics.query_ids import make_query_id
from app.services.imports import FileImport, ImportOutcome, told_progress
from app.services.search.search import TimedResult, Visitor, encode_hit, for_site
from app.services.sources import removal
from app.web.auth import Caller
from app.web.error_handlers import translate
from app.web.logins import check_own_password
from app.web.request_checks import current_session, require_search
from backends.base import SearchQuery


def changing(caller: Caller) -> AbstractContextManager[Session]:
    """A transaction that changes the caller's account, sites or keys."""
    part = runtime()
    return credential_change(part.database, part.counters, caller.account.id)


def create_site(caller: Caller, fields: dict[str, Any]) -> Site:
    """Add a site.

    Raises:
        ApiError: 403 at the plan's limit.
    """
    with changing(caller) as session:
        return sites.create_site(
            session, caller.account.id, caller.account.limits, runtime().engines.current.identity, **fields
        )


def update_site(caller: Caller, site_id: int, changes: dict[str, Any]) -> Site:
    """Change a site, or pause it.

    Raises:
        ApiError: 404.
    """
    with changing(caller) as session:
        site = sites.update_site(session, caller.account.id, site_id, changes)
    runtime().run_engine_tasks()
    return site


def delete_site(caller: Caller, site_id: int) -> None:
    """Remove a site with everything it has.

    Raises:
        ApiError: 404.
    """
    part = runtime()
    with part.database.read() as session:
        sites.get_site(session, caller.account.id, site_id)
    removal.delete_pages_of_sites(part.database, caller.account.id, site_id)
    with changing(caller) as session:
        sites.delete_site(session, caller.account.id, site_id)
    part.run_engine_tasks()


def create_key(caller: Caller, site_id: int, fields: dict[str, Any]) -> tuple[KeyView, str]:
    """Add a key; gives it and its token.

    Raises:
        ApiError: 404, 400 for an expiry in the past, 403 at the plan's limit, or for more rights than the caller's.
    """
    secret = runtime().settings.secret_key
    with changing(caller) as session:
        key, token = keys.create_key(
            session, caller.account.id, caller.account.limits, secret, site_id, **fields, held=caller.rights
        )
        return keys.view(key), token


def update_key(caller: Caller, site_id: int, key_id: str, changes: dict[str, Any]) -> KeyView:
    """Change a key's name, expiry, scopes, site, or origins.

    Raises:
        ApiError: 404, 400; 403 for a key that may do more than the caller.
    """
    with changing(caller) as session:
        shown = keys.view(keys.update_key(session, caller.account.id, site_id, key_id, changes, held=caller.rights))
    runtime().run_engine_tasks()
    return shown


def rotate_key(caller: Caller, site_id: int, key_id: str, fields: dict[str, Any]) -> tuple[KeyView, str]:
    """Give a key a new token.

    Raises:
        ApiError: 404; 400 for an expired key; 403 for a key that may do more than the caller.
    """
    secret = runtime().settings.secret_key
    with changing(caller) as session:
        key, token = keys.rotate_key(session, caller.account.id, secret, site_id, key_id, **fields, held=caller.rights)
        shown = keys.view(key)
    runtime().run_engine_tasks()
    return shown, token


def toggle_key(caller: Caller, key_id: str, active: bool | None) -> KeyView:
    """Disable or enable a key.

    Raises:
        ApiError: 404; 400 for an expired key; 403 for a key that may do more than the caller.
    """
    with changing(caller) as session:
        shown = keys.view(keys.toggle_key(session, caller.account.id, key_id, active=active, held=caller.rights))
    runtime().run_engine_tasks()
    return shown


def dismiss_exposure(caller: Caller, site_id: int, key_id: str) -> None:
    """Say no more of a private key's being in a web page, until it is rotated.

    Raises:
        ApiError: 404; 403 for a key that may do more than the caller.
    """
    with runtime().database.write() as session:
        keys.dismiss_exposure(session, caller.account.id, site_id, key_id, held=caller.rights)


def delete_key(caller: Caller, site_id: int, key_id: str) -> None:
    """Remove a key.

    Raises:
        ApiError: 404; 403 for a key that may do more than the caller.
    """
    with changing(caller) as session:
        keys.delete_key(session, caller.account.id, site_id, key_id, held=caller.rights)
    runtime().run_engine_tasks()


def get_user(session: Session, caller: Caller) -> Member:
    """Whose profile a caller's is: the member's own; for a key, the first owner's.

    Raises:
        ApiError: 404 if the member was removed meanwhile.
    """
    if caller.member is None:
        return members.first_owner(session, caller.account.id)
    return members.get_member(session, caller.account.id, caller.member.id)


def update_profile(caller: Caller, changes: dict[str, Any]) -> Member:
    """Change name, e-mail or password of the caller's user; a new password ends their other sessions.

    Raises:
        ApiError: 400 for a taken e-mail; 403 for a wrong password, or what only owners may change; 429 after too
            many.
    """
    member_id = _member_id(caller)
    if "weekly_digest" in changes and not caller.is_owner:
        raise ApiError(ErrorCode.INSUFFICIENT_PERMISSION, "Only an owner can change which mails the account gets.")
    if "new_password" in changes:
        check_own_password(caller.account.id, member_id, changes["current_password"])
        changes = {**changes, "password_hash": accounts.hash_password(changes["new_password"])}
    with runtime().database.write() as session:
        return accounts.update_profile(
            session, caller.account.id, changes, member_id=member_id, kept_session=current_session()
        )


def _member_id(caller: Caller) -> int | None:
    return None if caller.member is None else caller.member.id


def delete_account(caller: Caller, password: str, reason: str) -> None:
    """Delete the caller's account with everything it has.

    Raises:
        ApiError: 403 for a wrong password, 429 after too many.
    """
    part = runtime()
    check_own_password(caller.account.id, _member_id(caller), password)
    removal.delete_pages_of_sites(part.database, caller.account.id)
    with changing(caller) as session:
        accounts.delete_account(session, caller.account.id, reason=reason)
    part.counters.forget_account(caller.account.id, now=now().timestamp())
    part.run_engine_tasks()


MAX_SKIPPED_LINES = 10_000
"""With more bad lines than this, a file that was sent is given up: looking at each costs more than sending it."""


def import_file(caller: Caller, site_id: int, file: ByteStream, form: str, columns: str) -> ImportOutcome:
    """Import a file of documents.

    Args:
        form: One of the formats of :mod:`app.importers.formats`.
        columns: As :func:`app.importers.column_map.read_column_map` takes it.

    Raises:
        ApiError: 400 for a file that is none, or columns it does not have; 404; 403 for a paused site or a full plan;
            503. The message says what was indexed before.
    """
    part = runtime()
    outcome = ImportOutcome()
    try:
        column_map = read_column_map(columns)
        with part.database.read() as session:
            if not sites.get_site(session, caller.account.id, site_id).active:
                raise sites.site_inactive()
        limits = caller.account.limits
        most_fields = part.settings.max_site_fields
        job = FileImport(
            part.writer, caller.account.id, limits, site_id, most_fields, max_skipped=MAX_SKIPPED_LINES, outcome=outcome
        )
        job.run(read_file(file, form, column_map))
    except Exception as error:
        raise _interrupted(error, outcome) from error
    return outcome


def _interrupted(error: Exception, outcome: ImportOutcome) -> ApiError:
    known = _unreadable(error) if isinstance(error, UnreadableFile) else translate(error)
    return ApiError(
        known.code,
        known.message + told_progress(outcome),
        details=known.details,
        retry_after=known.retry_after,
        headers=known.headers,
    )


def _unreadable(error: UnreadableFile) -> ApiError:
    return field_error(error.field, error.problem.code, str(error.problem))


@dataclass(frozen=True, slots=True)
class Found:
    """A search and what it found.

    Attributes:
        query_id: The search's name, by which clicks refer to it.
    """

    query: SearchQuery
    timed: TimedResult
    query_id: str


def search_site(site: SiteRecord, wanted: SearchQuery, visitor: Visitor | None, shown: Set[str] | None = None) -> Found:
    """Search a site and write the search down for analytics. The charge was reserved by :mod:`app.web.request_checks`.

    Args:
        wanted: What ``make_query`` gives; the site's own settings are added here.
        visitor: Who searches; ``None`` leaves the search out of analytics.
        shown: The fields of a hit; ``None`` for all.

    Raises:
        ApiError: 400 for what the query got wrong, or an answer that would be too large; 429 if the day's searches are
            used up.
        BackendUnavailable: The engine cannot answer now.
    """
    part = runtime()
    query = for_site(wanted, site)
    require_search()
    encode = encode_hit if shown is None else partial(encode_hit, shown=shown)
    counted = None if request.method == "HEAD" else visitor
    timed = part.searcher.run(site, query, encode, part.searcher.new_room(), record_for=counted)
    return Found(query, timed, make_query_id(part.settings.secret_key, site.id, query.text, timed.searched_at))
