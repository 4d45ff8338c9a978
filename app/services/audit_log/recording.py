"""Recording changes: every change of an audited row through a session is logged in the same flush, with its actor.

Services and views therefore cannot forget to log a change. Changes that bypass the session's objects, such as a key's
last use, are not logged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import event, insert, select, update
from sqlalchemy.orm import Session, UOWTransaction
from sqlalchemy.orm.attributes import get_history

from app.clock import isoformat, now
from app.models import AuditEntry, Member, Site
from app.services.audit_log.actors import Actor, FindActor
from app.services.audit_log.audited import AUDITED, Audited, account_of, site_of
from app.storage.database import Database

Change = dict[str, Any]
"""A changed field: ``field``, alone or with either ``before`` and ``after`` or ``added`` and ``removed``."""

MAX_ITEMS = 100
"""Maximum number of list items that an entry stores. Further items are only counted."""
MAX_CHARACTERS = 500
"""Maximum number of characters that an entry stores of a text."""
MAX_CHANGES_BYTES = 8_192
"""Maximum size of an entry's changes as JSON. In larger entries, the largest changes store only their field names."""
MAX_STATES = 50
"""Maximum number of complete search settings stored per site, each of which can be restored."""
MAX_STATE_BYTES = 1_000_000
"""Maximum size of complete search settings, as JSON, for which they are stored."""
_ACTOR = "audit_actor"


def watch(database: Database, find_actor: FindActor) -> None:
    """Log changes made through ``database``.

    Args:
        find_actor: Called once per transaction, before its first audited change, because a key may delete itself.
    """

    def find(session: Session, _flush: UOWTransaction, _instances: object) -> None:
        if _ACTOR not in session.info and _has_audited_changes(session):
            session.info[_ACTOR] = find_actor(session)

    event.listen(database.writing_sessions, "before_flush", find)
    event.listen(database.writing_sessions, "after_flush", _log_flush)


def log_login(session: Session, member: Member, actor: Actor) -> None:
    """Log that a member logged in."""
    row = _row(actor, "logged_in", AUDITED[Member].kind, member, member.account_id, str(member.id), [])
    session.execute(insert(AuditEntry), [row])


def _has_audited_changes(session: Session) -> bool:
    if any(type(thing) in AUDITED for things in (session.new, session.deleted) for thing in things):
        return True
    return any(type(thing) in AUDITED and _is_changed(AUDITED[type(thing)], thing) for thing in session.dirty)


def _is_changed(audited: Audited, thing: object) -> bool:
    columns = (*audited.fields, *audited.secrets, *audited.settings)
    return any(get_history(thing, column).has_changes() for column in columns)


def _log_flush(session: Session, _flush: UOWTransaction) -> None:
    rows = [
        *_rows(session, session.new, "created"),
        *_rows(session, session.dirty, "changed"),
        *_rows(session, session.deleted, "deleted"),
    ]
    if rows:
        session.connection().execute(insert(AuditEntry.__table__), rows)  # type: ignore[arg-type]
    for site_id in {row["site_id"] for row in rows if row["state"] is not None}:
        _forget_states(session, site_id, keep=MAX_STATES)
    for thing in session.deleted:
        if isinstance(thing, Site):
            _forget_states(session, thing.id, keep=0)


def _forget_states(session: Session, site_id: int, *, keep: int) -> None:
    """Delete all but the newest ``keep`` states of a site's settings. Their entries keep the list of changes."""
    of_site = AuditEntry.site_id == site_id, AuditEntry.state.is_not(None)
    older = select(AuditEntry.id).where(*of_site).order_by(AuditEntry.id.desc()).limit(1).offset(keep)
    newest = session.connection().scalar(older)
    if newest is not None:
        entries = AuditEntry.__table__
        session.connection().execute(
            update(entries).where(entries.c.id <= newest, entries.c.site_id == site_id).values(state=None)  # type: ignore[arg-type]
        )


def _rows(session: Session, things: Any, action: str) -> Iterator[dict[str, Any]]:
    for thing in things:
        audited = AUDITED.get(type(thing))
        if audited is None or (action != "changed" and not audited.logs_existence):
            continue
        account_id, name = None, str(thing.id)
        for kind, changes, state in _changes(audited, thing, action):
            if changes or action != "changed":
                account_id = account_of(session, thing) if account_id is None else account_id
                yield _row(
                    session.info[_ACTOR], _logged_action(action, thing), kind, thing, account_id, name, changes, state
                )


def _logged_action(action: str, thing: Any) -> str:
    """Return the action to log. Deleting a site moves it to the trash; removing it from there is ``purged``."""
    if not isinstance(thing, Site):
        return action
    before, after = _values(thing, "deleted_at")
    if action == "deleted" and after is not None:
        return "purged"
    if before is None and after is not None:
        return "deleted"
    return "restored" if before is not None and after is None else action


def _row(
    actor: Actor,
    action: str,
    kind: str,
    thing: Any,
    account_id: int,
    object_id: str,
    changes: Sequence[Change],
    state: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    return {
        "account_id": account_id,
        "created_at": now(),
        "actor_kind": actor.kind,
        "actor_id": actor.id,
        "actor_name": actor.name[:300],
        "address": actor.address,
        "action": action,
        "kind": kind,
        "object_id": object_id,
        "object_name": AUDITED[type(thing)].name(thing)[:300],
        "site_id": site_of(thing),
        "changes": _bounded(changes),
        "state": state,
    }


def _changes(audited: Audited, thing: Any, action: str) -> Iterator[tuple[str, list[Change], Mapping[str, Any] | None]]:
    """Yield each kind with its changes and, for settings, the complete previous state.

    A deleted row needs only its name."""
    if action == "deleted":
        yield audited.kind, [], None
        return
    changes: list[Change] = []
    for field in audited.fields:
        before, after = _values(thing, field)
        if before != after:
            changes.append(_change(field, before, after))
    if action == "changed":
        changes += [
            {"field": name} for column, name in audited.secrets.items() if get_history(thing, column).has_changes()
        ]
    yield audited.kind, changes, None
    if action == "changed":
        for column, (kind, read) in audited.settings.items():
            before, after = _values(thing, column)
            if before != after:
                is_kept = len(orjson.dumps(before)) <= MAX_STATE_BYTES
                yield kind, setting_changes(read(before or {}), read(after or {})), before or {} if is_kept else None


def _bounded(changes: Sequence[Change]) -> list[Change]:
    """Return the changes, shortened to the size limit of an entry."""
    bounded = list(changes)
    sizes = [len(orjson.dumps(change)) for change in bounded]
    total = sum(sizes)
    for index in sorted(range(len(bounded)), key=sizes.__getitem__, reverse=True):
        if total <= MAX_CHANGES_BYTES:
            break
        bounded[index] = {"field": bounded[index]["field"]}
        total += len(orjson.dumps(bounded[index])) - sizes[index]
    return bounded


def _values(thing: Any, field: str) -> tuple[Any, Any]:
    """Return a column's value before and after the flush. The value before is ``None`` for new rows."""
    history = get_history(thing, field)
    after = getattr(thing, field)
    if not history.has_changes():
        return after, after
    return (history.deleted[0] if history.deleted else None), after


def setting_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    return [_change(field, before[field], after[field]) for field in after if before[field] != after[field]]


def _change(field: str, before: Any, after: Any) -> Change:
    """Return a change. For lists, it contains added and removed items, unless only their order changed."""
    if isinstance(before, list) and isinstance(after, list):
        added, removed = _without(after, before), _without(before, after)
        if added or removed:
            return {"field": field, "added": _few(added), "removed": _few(removed)}
        return {"field": field}
    return {"field": field, "before": _brief(before), "after": _brief(after)}


def _without(items: Sequence[Any], removed: Sequence[Any]) -> list[Any]:
    other_values = {orjson.dumps(item) for item in removed}
    return [item for item in items if orjson.dumps(item) not in other_values]


def _few(items: Sequence[Any]) -> list[Any]:
    shortened = [_brief(item) for item in items[:MAX_ITEMS]]
    more = len(items) - len(shortened)
    return [*shortened, f"… and {more} more"] if more else shortened


def _brief(value: Any) -> Any:
    """Convert a value for JSON, and shorten it if it is long."""
    if isinstance(value, datetime):
        return isoformat(value)
    if isinstance(value, list):
        return _few(value) if len(orjson.dumps(value)) > MAX_CHARACTERS else value
    if isinstance(value, dict):
        text = orjson.dumps(value).decode()
        return value if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + "…"
    return value[:MAX_CHARACTERS] + "…" if isinstance(value, str) and len(value) > MAX_CHARACTERS else value
