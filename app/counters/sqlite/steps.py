"""Steps of the SQLite store. Each runs inside one transaction and gets a function that executes statements."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from app.counters.metering import (
    IDEMPOTENCY_SECONDS,
    MinimumUsage,
    charge_of_site,
    continues_intent,
    day_from_number,
    day_number,
    milliseconds,
    window_end,
)
from app.counters.sqlite.housekeeper import Execute
from app.counters.values import (
    ConsumeOutcome,
    CredentialVersion,
    IdempotencyKey,
    Intent,
    IntentRequest,
    Operation,
    ReportOutcome,
    ReportStatus,
    Reservation,
    SiteUsage,
    UncountedSearch,
    UsageReservation,
    WindowRequest,
    WindowState,
    longest_wait,
    settlement_key,
)

_READ_WINDOW = "SELECT hits, reset_ms FROM windows WHERE key=?"
_START_WINDOW = "INSERT OR REPLACE INTO windows VALUES (?, ?, ?)"
_COUNT_HIT = "UPDATE windows SET hits=? WHERE key=?"
_READ_USED = "SELECT used FROM days WHERE account_id=? AND day=?"
_WRITE_USED = "UPDATE days SET used=? WHERE account_id=? AND day=?"
_START_DAY = "INSERT INTO days (account_id, day, used) VALUES (?, ?, ?)"
_READ_INTENT = "SELECT began_ms, last_ms, requests, text, day FROM intents WHERE key=? ORDER BY began_ms DESC LIMIT 1"
_CONTINUE_INTENT = "UPDATE intents SET text=?, last_ms=?, requests=requests + 1 WHERE key=? AND began_ms=?"
_BEGIN_INTENT = "INSERT INTO intents VALUES (?, ?, ?, ?, ?, 1, 0)"
_FAIL_REQUEST = "UPDATE intents SET failed=failed + 1 WHERE key=? AND began_ms=?"
_END_FAILED_INTENT = "DELETE FROM intents WHERE key=? AND began_ms=? AND failed >= requests"
_READ_EPOCH = "SELECT started, finished, (SELECT id FROM incarnations) FROM epochs WHERE account_id=?"
_RAISE_DAY = (
    "INSERT INTO days (account_id, day, used, indexing) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE"
    " SET used=max(used, excluded.used), indexing=max(indexing, excluded.indexing)"
)


def consume(
    execute: Execute,
    windows: Sequence[WindowRequest],
    reserve: UsageReservation | None,
    intent: IntentRequest | None,
    credentials_of: int | None,
    now_ms: int,
) -> ConsumeOutcome:
    day = now_ms // 86_400_000
    today = day_from_number(day)
    credential_version = None if credentials_of is None else _epoch(execute, credentials_of, now_ms)
    last_began_ms = -1
    if intent is not None:
        row = execute(_READ_INTENT, (intent.key,)).fetchone()
        if row is not None:
            last_began_ms, last_ms, requests, last_text, began_day = row
            if continues_intent(intent.text, last_began_ms, last_ms, requests, last_text, now_ms):
                begun = Intent(intent.key, last_began_ms)
                return _continue_intent(execute, windows, reserve, intent, begun, began_day, credential_version, now_ms)
        windows = [*windows, *intent.windows]
    states = []
    began = []
    full = False
    for key, limit, seconds, cost in windows:
        length_ms = seconds * 1000
        row = execute(_READ_WINDOW, (key,)).fetchone()
        # A window that ends later than that was begun by a wrong clock.
        if row is not None and now_ms < row[1] <= now_ms + 2 * length_ms:
            hits, reset_ms = row
            began.append(False)
        else:
            hits, reset_ms = 0, window_end(now_ms, seconds)
            began.append(True)
        full = full or (limit is not None and hits + cost > limit)
        states.append((key, limit, seconds, cost, hits, reset_ms))
    if full:
        window_states = tuple(map(WindowState._make, states))
        return ConsumeOutcome(window_states, longest_wait(window_states), None, None, today, credential_version)
    # Only now, because either all windows count the request or none does.
    counted = []
    for (key, limit, seconds, cost, hits, reset_ms), begins in zip(states, began, strict=True):
        hits += cost
        if begins:
            execute(_START_WINDOW, (key, hits, reset_ms))
        else:
            execute(_COUNT_HIT, (hits, key))
        counted.append(WindowState(key, limit, seconds, cost, hits, reset_ms))
    if reserve is None:
        return ConsumeOutcome(tuple(counted), None, None, None, today, credential_version)
    account_id, daily_limit, site_id = reserve
    row = execute(_READ_USED, (account_id, day)).fetchone()
    used = 0 if row is None else row[0]
    if daily_limit is not None and used >= daily_limit:
        return ConsumeOutcome(tuple(counted), None, None, used, today, credential_version)
    used += 1 if site_id is None else _count_gateway(execute, account_id, day, site_id, 1)
    if row is None:
        execute(_START_DAY, (account_id, day, used))
    else:
        execute(_WRITE_USED, (used, account_id, day))
    receipt = None
    if intent is not None:
        # The beginning identifies the intent, so it must differ from the last one's even within a millisecond.
        receipt = Intent(intent.key, max(now_ms, last_began_ms + 1))
        execute(_BEGIN_INTENT, (*receipt, day, intent.text, now_ms))
    return ConsumeOutcome(
        tuple(counted), None, Reservation(account_id, site_id, today, receipt), used, today, credential_version
    )


def _continue_intent(
    execute: Execute,
    windows: Sequence[WindowRequest],
    reserve: UsageReservation | None,
    intent: IntentRequest,
    begun: Intent,
    began_day: int,
    credential_version: CredentialVersion | None,
    now_ms: int,
) -> ConsumeOutcome:
    """Count a request that continues an intent, in the windows that count every request."""
    assert reserve is not None
    account_id, _, site_id = reserve
    # The windows of the intent were counted when it began. They are only read, for the headers of the response.
    counted = consume(execute, windows, None, None, None, now_ms)
    states = counted.windows + tuple(peek(execute, intent.windows, None, None, now_ms).windows)
    if counted.rejected is not None:
        return counted._replace(windows=states, credential_version=credential_version)
    execute(_CONTINUE_INTENT, (intent.text, now_ms, *begun))
    return ConsumeOutcome(
        states,
        None,
        Reservation(account_id, site_id, day_from_number(began_day), begun),
        _used(execute, account_id, now_ms // 86_400_000),
        counted.day,
        credential_version,
        continues=True,
    )


def peek(
    execute: Execute, windows: Sequence[WindowRequest], usage_of: int | None, credentials_of: int | None, now_ms: int
) -> ConsumeOutcome:
    day = now_ms // 86_400_000
    states = []
    for window in windows:
        length_ms = window.seconds * 1000
        row = execute(_READ_WINDOW, (window.key,)).fetchone()
        if row is None or not now_ms < row[1] <= now_ms + 2 * length_ms:
            row = 0, window_end(now_ms, window.seconds)
        states.append(WindowState(*window, *row))
    used = None if usage_of is None else _used(execute, usage_of, day)
    credential_version = None if credentials_of is None else _epoch(execute, credentials_of, now_ms)
    return ConsumeOutcome(tuple(states), longest_wait(states), None, used, day_from_number(day), credential_version)


def refund(execute: Execute, reservation: Reservation | None, windows: Sequence[WindowState], now_ms: int) -> None:
    for window in windows:
        if window.reset_ms > now_ms:
            execute(
                # The end identifies the window, so that a later one with the same key stays as it is.
                "UPDATE windows SET hits=max(0, hits - ?) WHERE key=? AND reset_ms=?",
                (window.cost, window.key, window.reset_ms),
            )
    if reservation is None:
        return
    account_id, site_id, today, intent = reservation
    if intent is not None:
        execute(_FAIL_REQUEST, intent)
        # Other requests of the intent have not failed, so its charge stands.
        if not execute(_END_FAILED_INTENT, intent).rowcount:
            return
    day = day_number(today)
    change = -1 if site_id is None else _count_gateway(execute, account_id, day, site_id, -1)
    execute("UPDATE days SET used=max(0, used + ?) WHERE account_id=? AND day=?", (change, account_id, day))


def begin_incarnation(execute: Execute) -> None:
    execute("DELETE FROM incarnations")
    execute("INSERT INTO incarnations VALUES (?)", (secrets.token_hex(8),))


def raise_day(execute: Execute, account_id: int, day: int, minimum: MinimumUsage) -> None:
    execute(_RAISE_DAY, (account_id, day, *minimum))


def settle(execute: Execute, search: UncountedSearch | Reservation, once: str, now_ms: int) -> None:
    settlement = (search.account_id, settlement_key(once))
    execute("DELETE FROM reports WHERE account_id=? AND key=? AND until_ms <= ?", (*settlement, now_ms))
    until_ms = now_ms + IDEMPOTENCY_SECONDS * 1000
    # The row marks the settlement as done. It expires like an idempotency key.
    if not execute("INSERT OR IGNORE INTO reports VALUES (?, ?, '', ?)", (*settlement, until_ms)).rowcount:
        return
    if isinstance(search, Reservation):
        refund(execute, search, (), now_ms)
    else:
        reserve = UsageReservation(search.account_id, None, search.gateway_site_id)
        consume(execute, (), reserve, search.intent, None, milliseconds(search.searched_at))


def reset(execute: Execute, keys: Sequence[str]) -> None:
    for key in keys:
        execute("DELETE FROM windows WHERE key=?", (key,))


def reset_all(execute: Execute) -> int:
    return execute("DELETE FROM windows").rowcount


def report(
    execute: Execute,
    account_id: int,
    site_id: int,
    operation: Operation,
    count: int,
    capped: bool,
    idempotency: IdempotencyKey | None,
    now_ms: int,
) -> ReportOutcome:
    day = now_ms // 86_400_000
    if idempotency is not None:
        stored = execute(
            "SELECT fingerprint FROM reports WHERE account_id=? AND key=? AND until_ms > ?",
            (account_id, idempotency.key, now_ms),
        ).fetchone()
        if stored is not None:
            status = ReportStatus.DUPLICATE if stored[0] == idempotency.fingerprint else ReportStatus.CONFLICT
            return ReportOutcome(status, _used(execute, account_id, day))
        execute(
            "INSERT OR REPLACE INTO reports VALUES (?, ?, ?, ?)",
            (account_id, *idempotency, now_ms + IDEMPOTENCY_SECONDS * 1000),
        )
    execute("INSERT OR IGNORE INTO days (account_id, day) VALUES (?, ?)", (account_id, day))
    if operation == "indexing":
        execute("UPDATE days SET indexing=indexing + ? WHERE account_id=? AND day=?", (count, account_id, day))
        return ReportOutcome(ReportStatus.RECORDED, _used(execute, account_id, day))
    old = _site(execute, account_id, day, site_id)
    new = old._replace(capped=old.capped + count) if capped else old._replace(trusted=old.trusted + count)
    execute("INSERT OR REPLACE INTO site_days VALUES (?, ?, ?, ?, ?, ?)", (account_id, day, site_id, *new))
    # The account pays the difference that the report makes to the charge of the site.
    used = _used(execute, account_id, day) + charge_of_site(*new) - charge_of_site(*old)
    execute(_WRITE_USED, (used, account_id, day))
    return ReportOutcome(ReportStatus.RECORDED, used)


def count_rejection(execute: Execute, account_id: int, now_ms: int) -> None:
    execute(
        "INSERT INTO refusals VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET searches=searches + 1",
        (account_id, now_ms // 86_400_000),
    )


def read_days(execute: Execute, account_id: int, first: int, last: int) -> list[tuple[int, int, int, int]]:
    return execute(
        "SELECT day, sum(used), sum(indexing), sum(refused) FROM ("
        " SELECT day, used, indexing, 0 AS refused FROM days WHERE account_id=:account AND day BETWEEN :first AND :last"
        " UNION ALL"
        " SELECT day, 0, 0, searches FROM refusals WHERE account_id=:account AND day BETWEEN :first AND :last"
        ") GROUP BY day HAVING sum(used) OR sum(indexing) OR sum(refused) ORDER BY day",
        {"account": account_id, "first": first, "last": last},
    ).fetchall()


def begin_change(execute: Execute, account_id: int, now_ms: int) -> CredentialVersion:
    _epoch(execute, account_id, now_ms)
    execute("UPDATE epochs SET started=started + 1, begun_ms=? WHERE account_id=?", (now_ms, account_id))
    return _epoch(execute, account_id, now_ms)


def end_change(execute: Execute, account_id: int, now_ms: int) -> CredentialVersion:
    _epoch(execute, account_id, now_ms)
    execute(
        # If the change was healed meanwhile, ``finished`` has already caught up and must not overtake ``started``.
        "UPDATE epochs SET finished=finished + 1, started=max(started, finished + 1) WHERE account_id=?",
        (account_id,),
    )
    return _epoch(execute, account_id, now_ms)


def heal(execute: Execute, begun_before_ms: int) -> int:
    return execute(
        "UPDATE epochs SET finished=started WHERE finished < started AND begun_ms < ?", (begun_before_ms,)
    ).rowcount


def forget_account(execute: Execute, account_id: int, now_ms: int) -> None:
    for table in ("days", "site_days", "reports", "refusals"):
        execute(f"DELETE FROM {table} WHERE account_id=?", (account_id,))  # noqa: S608 - our own names
    _epoch(execute, account_id, now_ms)
    # Every process must stop accepting cached credentials of the deleted account.
    execute("UPDATE epochs SET started=started + 1, finished=started + 1 WHERE account_id=?", (account_id,))


def forget_site(execute: Execute, account_id: int, site_id: int) -> None:
    execute("DELETE FROM site_days WHERE account_id=? AND site_id=?", (account_id, site_id))


def check(execute: Execute) -> None:
    # A write, since a full disk can still be read. This window has expired already, so the sweep deletes it.
    execute("INSERT OR REPLACE INTO windows VALUES (' check', 1, 0)")


def clear(execute: Execute) -> None:
    for table in ("windows", "days", "site_days", "reports", "epochs", "intents", "refusals"):
        execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
    begin_incarnation(execute)


def _epoch(execute: Execute, account_id: int, now_ms: int) -> CredentialVersion:
    row = execute(_READ_EPOCH, (account_id,)).fetchone()
    if row is None:
        # The time instead of 0, so that a version from before a loss of data never equals a later one.
        execute("INSERT INTO epochs VALUES (?, ?, ?, 0)", (account_id, now_ms, now_ms))
        row = execute(_READ_EPOCH, (account_id,)).fetchone()
    return CredentialVersion._make(row)


def _used(execute: Execute, account_id: int, day: int) -> int:
    row = execute(_READ_USED, (account_id, day)).fetchone()
    return 0 if row is None else row[0]


def _site(execute: Execute, account_id: int, day: int, site_id: int) -> SiteUsage:
    row = execute(
        "SELECT gateway, trusted, capped FROM site_days WHERE account_id=? AND day=? AND site_id=?",
        (account_id, day, site_id),
    ).fetchone()
    return SiteUsage(0, 0, 0) if row is None else SiteUsage._make(row)


def _count_gateway(execute: Execute, account_id: int, day: int, site_id: int, searches: int) -> int:
    """Add to the gateway's count. Returns the change of the charge."""
    old = _site(execute, account_id, day, site_id)
    new = old._replace(gateway=max(0, old.gateway + searches))
    execute("INSERT OR REPLACE INTO site_days VALUES (?, ?, ?, ?, ?, ?)", (account_id, day, site_id, *new))
    return charge_of_site(*new) - charge_of_site(*old)
