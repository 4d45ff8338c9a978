"""Webhooks: managing them, queueing their events, and listing their deliveries."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Select, delete, func, or_, select, text, update
from sqlalchemy.orm import Session

from app.clock import Pauses, isoformat, now
from app.config import Settings
from app.errors import ApiError, ErrorCode
from app.models import Account, Webhook, WebhookDelivery
from app.models.base import has_come, to_microseconds
from app.services.sites import describe_account, get_account
from app.storage.database import ROW_LOCK, read_page
from app.wording import counted

TRIES = 8
"""Number of attempts before a delivery fails."""
PAUSES = Pauses(680.0, 86_400.0)
"""Pauses between attempts; the seven pauses take 12 to 24 hours in total."""
CLAIM = timedelta(seconds=60)
"""Time for which a process claims a webhook, well beyond the duration of an attempt."""
MAX_FINISHED = 50
"""Number of a webhook's most recent finished deliveries that are kept."""
MAX_WAITING = 1_000
"""Maximum number of a webhook's waiting deliveries. Beyond it, the oldest deliveries fail."""
OFF_AFTER = timedelta(days=3)
"""Time of continuous failure after which a webhook is turned off."""

_DELIVERY_ID = re.compile(r"msg_[0-9a-f]{24}", re.ASCII)


@dataclass(frozen=True, slots=True)
class DeliveryClaim:
    """The right to make one attempt, with everything it needs.

    Attributes:
        attempt: Number of the attempt, from 1.
    """

    lease: str
    webhook_id: str
    delivery_id: str
    attempt: int
    url: str
    payload: dict[str, Any]


def list_deliveries(
    session: Session, webhook: Webhook, *, limit: int, offset: int
) -> tuple[Sequence[WebhookDelivery], int]:
    """Return one page of a webhook's deliveries, newest first, and their total number."""
    of_webhook = WebhookDelivery.webhook_id == webhook.id
    newest = select(WebhookDelivery).where(of_webhook).order_by(*_NEWEST_FIRST)
    return read_page(session, newest, limit=limit, offset=offset)


def redeliver(session: Session, account_id: int, webhook_id: str, delivery_id: str) -> WebhookDelivery:
    """Send a delivery again immediately, with the same number of attempts as before.

    Raises:
        ApiError: 404.
    """
    webhook = get_webhook(session, account_id, webhook_id, lock=True)
    delivery = session.get(WebhookDelivery, delivery_id) if _DELIVERY_ID.fullmatch(delivery_id) else None
    if delivery is None or delivery.webhook_id != webhook.id:
        raise ApiError(ErrorCode.DELIVERY_NOT_FOUND, "Delivery not found.")
    delivery.status, delivery.attempts, delivery.due_at = "waiting", 0, now()
    session.flush()
    return delivery


def claim_delivery(session: Session) -> DeliveryClaim | None:
    """Claim the oldest due delivery among webhooks without a delivery in progress; ``None`` if no delivery is due.

    Deliveries of suspended accounts keep waiting.
    """
    locked = (WebhookDelivery, Webhook)
    # Another process is claiming locked deliveries.
    row = session.execute(_due().with_for_update(of=locked, skip_locked=True, **ROW_LOCK)).first()
    if row is None:
        return None
    delivery, webhook = row
    moment = now()
    # Counted before the attempt: a receiver that crashes the process must not be tried forever.
    delivery.attempts += 1
    delivery.attempted_at = moment
    # The lease is on the webhook, so that a receiver gets one event at a time.
    webhook.lease, webhook.lease_until = secrets.token_hex(10), moment + CLAIM
    session.flush()
    return DeliveryClaim(webhook.lease, webhook.id, delivery.id, delivery.attempts, webhook.url, delivery.payload)


_NEWEST_FIRST = WebhookDelivery.created_at.desc(), WebhookDelivery.id.desc()
_ANY_WAITING = select(WebhookDelivery.id).where(WebhookDelivery.due_at.is_not(None)).limit(1)
"""Built once, since every process asks each second, and the query of due deliveries takes three times as long."""


def has_due(session: Session) -> bool:
    """Whether a delivery can be claimed."""
    return session.scalar(_ANY_WAITING) is not None and session.execute(_due()).first() is not None


def _due() -> Select[WebhookDelivery, Webhook]:
    return (
        select(WebhookDelivery, Webhook)
        .join(Webhook, Webhook.id == WebhookDelivery.webhook_id)
        .outerjoin(Account, Account.id == Webhook.account_id)  # The operator's webhook has no account.
        .where(
            Account.suspended_at.is_(None),
            or_(
                has_come(WebhookDelivery.due_at, now(), timedelta(seconds=PAUSES.longest)),
                # A new delivery is due in any case, even if the clock was set back since it was queued.
                (WebhookDelivery.attempts == 0) & WebhookDelivery.due_at.is_not(None),
            ),
            or_(Webhook.lease_until.is_(None), has_come(Webhook.lease_until, now(), 2 * CLAIM)),
        )
        .order_by(WebhookDelivery.due_at, WebhookDelivery.id)
        .limit(1)
    )


def settle(session: Session, claim: DeliveryClaim, response_status: int | None, error: str | None) -> Webhook | None:
    """Record the outcome of an attempt. Returns the webhook if it was turned off after failing for days.

    Nothing is recorded if the claim has expired or the webhook was deleted.

    Args:
        response_status: HTTP status of the response; ``None`` without a response.
        error: Reason why the event was not delivered; ``None`` on success.
    """
    webhook = session.scalar(
        # If another process took over an expired claim, the webhook has a new lease.
        select(Webhook).where(Webhook.id == claim.webhook_id, Webhook.lease == claim.lease).with_for_update(**ROW_LOCK)
    )
    if webhook is None:
        return None
    webhook.lease = webhook.lease_until = None
    webhook.failing_since = None if error is None else webhook.failing_since or now()
    delivery = session.get(WebhookDelivery, claim.delivery_id)
    if delivery is None:  # The delivery was given up meanwhile, and deleted as old.
        return None
    delivery.response_status, delivery.error = response_status, error
    is_given_up = False
    if error is None:
        delivery.status, delivery.due_at = "delivered", None
    # Without a time, the delivery was failed meanwhile: the webhook was turned off, or too many were waiting.
    elif delivery.due_at is not None and claim.attempt < TRIES:
        delivery.due_at = now() + timedelta(seconds=PAUSES.after(claim.attempt))
    else:
        delivery.status, delivery.due_at = "failed", None
        # Checked only after the last attempt, so that a delivery after a long pause still gets all its attempts.
        # The operator's webhook is never turned off, because only customers can turn theirs on again.
        is_given_up = (
            webhook.account_id is not None
            and webhook.active
            and webhook.failing_since is not None
            and _is_hopeless(webhook.failing_since)
        )
    session.flush()
    if is_given_up:
        webhook.active = False
        give_up(session, webhook)
    _delete_old(session, webhook.id)
    return webhook if is_given_up else None


def _is_hopeless(failing_since: datetime) -> bool:
    return failing_since <= now() - OFF_AFTER


def give_up(session: Session, webhook: Webhook) -> None:
    """Fail all waiting deliveries of a webhook that was turned off."""
    _fail_waiting(session, webhook.id, 0, "The webhook was turned off.")


def bound_waiting(session: Session, webhook_id: str) -> None:
    """Fail the oldest waiting deliveries of a webhook beyond :data:`MAX_WAITING`."""
    _fail_waiting(session, webhook_id, MAX_WAITING, "Too many newer deliveries were waiting.")


def _fail_waiting(session: Session, webhook_id: str, keep: int, error: str) -> None:
    """Fail the waiting deliveries of a webhook, except the newest ``keep``."""
    waiting = WebhookDelivery.webhook_id == webhook_id, WebhookDelivery.due_at.is_not(None)
    ids = session.scalars(select(WebhookDelivery.id).where(*waiting).order_by(*_NEWEST_FIRST).offset(keep)).all()
    if ids:
        failed = update(WebhookDelivery).where(WebhookDelivery.id.in_(ids))
        session.execute(failed.values(status="failed", due_at=None, error=error))
        _delete_old(session, webhook_id)


def _delete_old(session: Session, webhook_id: str) -> None:
    of_webhook = WebhookDelivery.webhook_id == webhook_id
    newest = select(WebhookDelivery.id).where(of_webhook).order_by(*_NEWEST_FIRST).limit(MAX_FINISHED)
    session.execute(
        delete(WebhookDelivery).where(of_webhook, WebhookDelivery.due_at.is_(None), WebhookDelivery.id.not_in(newest))
    )


def discard_waiting(session: Session) -> None:
    """Delete all waiting deliveries. Used in a copy of an installation, because the original sends them."""
    session.execute(delete(WebhookDelivery).where(WebhookDelivery.due_at.is_not(None)))
    session.execute(update(Webhook).values(lease=None, lease_until=None))


def announce(session: Session, account_id: int, event: str, data: Mapping[str, Any]) -> None:
    """Queue an event for an account's webhooks, sent if and when the transaction commits.

    A background job of any process sends it.

    Args:
        event: One of :data:`schemas.validation.webhooks.EVENTS`.
        data: Content of the event, serializable as JSON.
    """
    # Lock the webhooks, so that none is deleted before its delivery is inserted.
    webhooks = session.scalars(
        select(Webhook)
        .where(Webhook.account_id == account_id, Webhook.active)
        .order_by(Webhook.id)
        # A shared lock that only blocks deletion, so that concurrent events do not wait for each other.
        .with_for_update(read=True, key_share=True)
    ).all()
    _queue(session, [webhook.id for webhook in webhooks if event in webhook.events], event, data)


OPERATOR_WEBHOOK_ID = "whk_operator"
"""ID of the operator's webhook, in a form that no customer's webhook has."""

# Several processes may create it at the same time.
_CREATE_OPERATOR_WEBHOOK = text(
    "INSERT INTO webhooks (id, url, events, active, created_at, updated_at)"
    " VALUES (:id, '', '[]', true, :moment, :moment) ON CONFLICT (id) DO NOTHING"
)


def notify_operator(session: Session, settings: Settings, event: str, account: Account, **details: Any) -> None:
    """Queue an event for the operator, sent if and when the transaction commits; does nothing without a receiver.

    Args:
        event: One of the events in :mod:`schemas.validation.webhooks`.
        account: The account that the event is about, after the change.
        details: Further content of the event, serializable as JSON.
    """
    if settings.operator_webhook_url:
        values = {"id": OPERATOR_WEBHOOK_ID, "moment": to_microseconds(now())}
        session.execute(_CREATE_OPERATOR_WEBHOOK, values)
        _queue(session, [OPERATOR_WEBHOOK_ID], event, {"account": describe_account(account), **details})


def _queue(session: Session, receivers: Sequence[str], event: str, data: Mapping[str, Any]) -> None:
    moment = now()
    payload = {"type": event, "timestamp": isoformat(moment), "data": dict(data)}
    session.add_all(
        WebhookDelivery(
            id=f"msg_{secrets.token_hex(12)}",
            webhook_id=webhook_id,
            event=event,
            payload=payload,
            status="waiting",
            due_at=moment,
            created_at=moment,
        )
        for webhook_id in receivers
    )
    session.flush()
    for webhook_id in receivers:
        bound_waiting(session, webhook_id)


MAX_WEBHOOKS = 10
"""Maximum number of webhooks of an account."""

_WEBHOOK_ID = re.compile(r"whk_[0-9a-f]{20}", re.ASCII)


def get_webhook(session: Session, account_id: int, webhook_id: str, *, lock: bool = False) -> Webhook:
    """Load a webhook for a caller.

    Raises:
        ApiError: 404 if the account has no webhook with this ID.
    """
    webhook = None
    if _WEBHOOK_ID.fullmatch(webhook_id):  # PostgreSQL does not accept text with NUL.
        query = select(Webhook).where(Webhook.id == webhook_id, Webhook.account_id == account_id)
        webhook = session.scalar(query.with_for_update(**ROW_LOCK) if lock else query)
    if webhook is None:
        raise ApiError(ErrorCode.WEBHOOK_NOT_FOUND, "Webhook not found.")
    return webhook


def list_webhooks(session: Session, account_id: int, *, limit: int, offset: int) -> tuple[Sequence[Webhook], int]:
    """Return one page of the account's webhooks, oldest first, and their total number."""
    oldest = select(Webhook).where(Webhook.account_id == account_id).order_by(Webhook.created_at, Webhook.id)
    return read_page(session, oldest, limit=limit, offset=offset)


def create_webhook(session: Session, account_id: int, *, url: str, events: list[str], active: bool) -> Webhook:
    """Create a webhook.

    Raises:
        ApiError: 403 if the account has reached its limit.
    """
    get_account(session, account_id, lock=True)
    count = session.scalar(select(func.count()).select_from(Webhook).where(Webhook.account_id == account_id)) or 0
    if count >= MAX_WEBHOOKS:
        raise ApiError(
            ErrorCode.WEBHOOK_LIMIT_REACHED, f"An account can have {counted(MAX_WEBHOOKS, 'webhook')}; delete one."
        )
    moment = now()
    webhook = Webhook(
        id=f"whk_{secrets.token_hex(10)}",
        account_id=account_id,
        url=url,
        events=events,
        active=active,
        created_at=moment,
        updated_at=moment,
    )
    session.add(webhook)
    session.flush()
    return webhook


def update_webhook(session: Session, account_id: int, webhook_id: str, changes: Mapping[str, Any]) -> Webhook:
    """Change a webhook. Turning it off marks its waiting deliveries as failed.

    Args:
        changes: ``url``, ``events``, and ``active``.

    Raises:
        ApiError: 404.
    """
    webhook = get_webhook(session, account_id, webhook_id, lock=True)
    for name, value in changes.items():
        setattr(webhook, name, value)
    if changes.get("active") is False:
        give_up(session, webhook)
    elif "active" in changes or "url" in changes:
        webhook.failing_since = None
    webhook.updated_at = now()
    session.flush()
    return webhook


def delete_webhook(session: Session, account_id: int, webhook_id: str) -> None:
    """Delete a webhook with its deliveries.

    Raises:
        ApiError: 404.
    """
    session.delete(get_webhook(session, account_id, webhook_id, lock=True))
    session.flush()
