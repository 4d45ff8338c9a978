"""The mail that tells an owner that a webhook was switched off."""

from __future__ import annotations

from urllib.parse import urlsplit

from sqlalchemy.orm import Session

from app.models import Webhook
from app.services.mail.letters import Letter, Link
from app.services.mail.queue import queue_mail
from app.services.sites import get_account

KIND = "webhook_off"


def queue_notice(session: Session, webhook: Webhook, public_url: str) -> None:
    """Tell a webhook's owner that it was switched off, because nothing could be delivered."""
    account = get_account(session, webhook.account_id)
    letter = write_notice(webhook, public_url)
    queue_mail(session, account.email, letter.subject, letter.text, letter.html, kind=KIND, account_id=account.id)


def write_notice(webhook: Webhook, public_url: str) -> Letter:
    """A letter to the owner. Of the webhook's address it names the host alone: the rest may hold a secret."""
    host = urlsplit(webhook.url).netloc
    return Letter(
        f"Your webhook on {host} was switched off",
        (
            f"For three days, nothing could be delivered to the webhook on {host}. It is switched off now: no further "
            "events are sent to it.",
            "The list of its deliveries says what went wrong. Once the receiver works, switch the webhook on again "
            "there; what was missed can be sent again.",
            Link("Its deliveries", f"{public_url}/api/webhooks/{webhook.id}"),
            f"The site search at {public_url} sent this mail automatically.",
        ),
    )
