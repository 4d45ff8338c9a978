"""Delivering events to webhooks: signatures, attempts, and their outcomes."""

from __future__ import annotations

import base64
import hmac
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from threading import Event

import orjson
from sqlalchemy.orm import Session

from app.clock import now
from app.models import Webhook
from app.services.webhooks import OPERATOR_WEBHOOK_ID, DeliveryClaim, claim_delivery, has_due, settle
from app.storage.database import Database
from app.tokens import hash_token

_PREFIX = "whsec_"


def secret_of(webhook_id: str, secret_key: str) -> str:
    """Return a webhook's secret. It is derived from the server's secret, and is not stored."""
    digest = bytes.fromhex(hash_token(f"webhook {webhook_id}", secret_key))
    return _PREFIX + base64.b64encode(digest).decode()


def signed_headers(secret: str, message_id: str, moment: datetime, body: bytes) -> Mapping[str, str]:
    """Return the headers of one attempt.

    Args:
        moment: Time of the attempt.
    """
    timestamp = str(int(moment.timestamp()))
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    # The scheme of https://www.standardwebhooks.com, for which libraries exist in many languages.
    signature = hmac.digest(key, f"{message_id}.{timestamp}.".encode() + body, "sha256")
    return {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
    }


AT_ONCE = 32
"""Maximum number of webhooks to which a process sends concurrently.

It exceeds the number that one account can have, so an account with slow receivers does not delay other accounts.
"""

log = logging.getLogger(__name__)

Post = Callable[[str, Mapping[str, str], bytes], int]
"""Function that sends headers and a body to a URL and returns the response status, within a few seconds.

Raises:
    NotSent: There is no response.
"""

NotifyOwner = Callable[[Session, Webhook], None]
"""Function that notifies the owner of a webhook that was turned off."""


class NotSent(Exception):
    """An attempt without a response. The message explains it to the webhook's owner."""


@dataclass(frozen=True, slots=True)
class Receiver:
    """A URL that receives events, with the secret that signs them."""

    url: str
    secret: str
    post: Post


class Deliverer:
    """Sends deliveries in its own threads.

    Args:
        secret_key: The server's secret, from which webhook secrets derive.
        notify_owner: Notifies the owner of a webhook that was turned off; ``None`` if email is not set up.
        operator: Receiver of the operator's events, if any.
    """

    def __init__(
        self,
        database: Database,
        secret_key: str,
        post: Post,
        notify_owner: NotifyOwner | None,
        operator: Receiver | None = None,
    ):
        self._database = database
        self._secret_key = secret_key
        self._post = post
        self._notify_owner = notify_owner
        self._operator = operator
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="webhook")
        self._in_progress: set[Future[None]] = set()
        self._stopping = Event()

    def send_due(self) -> None:
        """Start sending due deliveries and return. Several processes may call this simultaneously.

        A delivery is sent between its claim and the record of its outcome. If the process ends in between, another
        process sends it again with the same ``webhook-id``.
        """
        self._collect_finished()
        while len(self._in_progress) < AT_ONCE and (claim := self._claim()) is not None:
            self._in_progress.add(self._threads.submit(self._work, claim))

    def finish(self) -> None:
        """Wait for deliveries in progress."""
        for future in self._in_progress:
            future.exception()
        self._collect_finished()

    def stop(self) -> None:
        """Stop starting deliveries, and wait for deliveries in progress."""
        self._stopping.set()
        self._threads.shutdown()
        self._collect_finished()

    def _collect_finished(self) -> None:
        """Remove finished deliveries, and raise the error of a thread whose database failed. Its claim expires."""
        finished = {future for future in self._in_progress if future.done()}
        self._in_progress -= finished
        for future in finished:
            future.result()

    def _work(self, claim: DeliveryClaim | None) -> None:
        while claim is not None:
            self._attempt(claim)
            # Continues in the same thread, so that a backlog does not wait for the next round of the job.
            claim = self._claim()

    def _claim(self) -> DeliveryClaim | None:
        if self._stopping.is_set():
            return None
        with self._database.read() as session:
            # A read does not queue behind other writers.
            if not has_due(session):
                return None
        with self._database.write() as session:
            return claim_delivery(session)

    def _attempt(self, claim: DeliveryClaim) -> None:
        status, error = None, None
        try:
            status = self._send(claim)
        except NotSent as not_sent:
            error = str(not_sent)
        # Redirects are failures, too: following one could lead to an internal address.
        if status is not None and not 200 <= status < 300:
            error = f"The receiver returned status {status}."
        with self._database.write() as session:
            switched_off = settle(session, claim, status, error)
            if switched_off is not None and self._notify_owner is not None:
                self._notify_owner(session, switched_off)
        if error is not None:
            identifiers = (claim.webhook_id, claim.attempt, claim.delivery_id)
            log.info("webhook %s: attempt %d of %s failed: %s", *identifiers, error)
        if switched_off is not None:
            log.warning("webhook %s was turned off because all its deliveries failed for three days", claim.webhook_id)

    def _send(self, claim: DeliveryClaim) -> int:
        receiver = self._receiver_of(claim)
        body = orjson.dumps(claim.payload)
        signature = signed_headers(receiver.secret, claim.delivery_id, now(), body)
        return receiver.post(receiver.url, {"Content-Type": "application/json", **signature}, body)

    def _receiver_of(self, claim: DeliveryClaim) -> Receiver:
        if claim.webhook_id != OPERATOR_WEBHOOK_ID:
            return Receiver(claim.url, secret_of(claim.webhook_id, self._secret_key), self._post)
        if self._operator is None:
            raise NotSent("OPERATOR_WEBHOOK_URL is no longer set.")
        return self._operator
