"""Limits on attempts, which slow down guessing and flooding."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from app.clock import now
from app.counters.values import CountersUnavailable, WindowRequest, WindowState
from app.errors import ApiError
from app.models import Member
from app.runtime import Runtime
from app.services.access.callers import Client
from app.services.accounts import accounts
from app.services.accounts.members import first_owner
from app.services.usage.quota import rate_limited, rejection_message
from app.wording import duration

log = logging.getLogger(__name__)
QUARTER_SECONDS = 900
HOUR_SECONDS = 3600
PASSWORD_FAILURES = 5
"""Maximum number of wrong passwords per hour for deleting an account or changing a password."""
PASSWORD_CHECKS = 30
"""Maximum number of password checks per hour for a logged-in member, whether right or wrong."""
PASSWORD_HASHES = 120
"""Maximum number of passwords hashed in 15 minutes for one IP address. Each takes a quarter of a CPU second."""


def check_own_password(
    runtime: Runtime, account_id: int, member_id: int | None, password: str
) -> accounts.PasswordProof:
    """Check the password of an identified member. Returns evidence of it for :mod:`accounts`.

    Args:
        member_id: ID of the member; ``None`` for the first owner, whose password a key must send.

    Raises:
        ApiError: 403 for a wrong password; 429 after five wrong passwords, or 30 checks, in an hour.
    """
    holder = f"{account_id}:{member_id or ''}"
    count_attempt(runtime, [WindowRequest(f"checks:{holder}", PASSWORD_CHECKS, HOUR_SECONDS)], "passwords")
    with runtime.database.read() as session:
        member = first_owner(session, account_id) if member_id is None else session.get(Member, member_id)
    window = WindowRequest(f"password:{holder}", PASSWORD_FAILURES, HOUR_SECONDS)
    counted = count_attempt(runtime, [window], "wrong passwords")
    if not accounts.check_password(member, password) or member is None:
        raise accounts.password_incorrect()
    runtime.counters.refund(windows=counted, now=now().timestamp())
    return accounts.PasswordProof(member.password_hash)


def count_attempt(runtime: Runtime, windows: Sequence[WindowRequest], noun: str) -> tuple[WindowState, ...]:
    """Count an attempt as a failure. The caller refunds it on success, so that concurrent guesses are all counted."""
    moment = now().timestamp()
    outcome = runtime.counters.consume(windows, now=moment)
    if outcome.rejected is not None:
        wait = outcome.rejected.retry_after(moment)
        raise rate_limited(f"Too many {noun}; try again in {duration(wait)}.", wait, outcome.rejected)
    return outcome.windows


def count_hashes(runtime: Runtime, client: Client, hashes: int = 1) -> None:
    """Count passwords that are about to be hashed for an IP address.

    Raises:
        RateLimited: The limit is exceeded.
    """
    count_attempt(
        runtime, [WindowRequest(f"hashes:{client.key}", PASSWORD_HASHES, QUARTER_SECONDS, hashes)], "passwords"
    )


@contextmanager
def forgiving_outages(runtime: Runtime, counted: Sequence[WindowState]) -> Iterator[None]:
    """Refund attempts if the block fails for a reason beyond the caller's control, such as an unavailable database."""
    try:
        yield
    except ApiError:
        raise
    except Exception:
        runtime.counters.refund(windows=counted, now=now().timestamp())
        raise


@contextmanager
def counting(runtime: Runtime, windows: Sequence[WindowRequest], noun: str) -> Iterator[None]:
    """Count an attempt, and refund it if the block raises.

    Raises:
        RateLimited: A window is full.
    """
    counted = count_attempt(runtime, windows, noun)
    try:
        yield
    except Exception:
        runtime.counters.refund(windows=counted, now=now().timestamp())
        raise


def count_uncharged(runtime: Runtime, windows: Sequence[WindowRequest], noun: str) -> None:
    """Enforce rate limits on an uncharged operation. Does nothing while the counter store is unavailable.

    Args:
        noun: The counted unit, in the singular.

    Raises:
        RateLimited: A window is full.
    """
    try:
        outcome = runtime.counters.consume(windows, now=now().timestamp())
    except CountersUnavailable as error:
        log.error("the counter store is unavailable: %s", error)
        return
    if outcome.rejected is not None:
        wait = outcome.rejected.retry_after(now().timestamp())
        raise rate_limited(rejection_message(outcome.rejected, noun), wait, outcome.rejected)
