"""Signing the events of webhooks and delivering them."""

from __future__ import annotations

import base64
import hmac
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from threading import Event

import orjson
from sqlalchemy.orm import Session

from app.clock import now
from app.models import Webhook
from app.services.webhooks.webhooks import Claim, claim_delivery, has_due, settle
from app.storage.database import Database
from app.tokens import hash_token

_PREFIX = "whsec_"


def secret_of(webhook_id: str, secret_key: str) -> str:
    """The secret of a webhook: it follows from the installation's, so that nothing that is stored gives it away."""
    digest = bytes.fromhex(hash_token(f"webhook {webhook_id}", secret_key))
    return _PREFIX + base64.b64encode(digest).decode()


def signed_headers(secret: str, message_id: str, moment: datetime, body: bytes) -> Mapping[str, str]:
    """The headers of one attempt.

    Args:
        moment: When it is made.
    """
    timestamp = str(int(moment.timestamp()))
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    signature = hmac.digest(key, f"{message_id}.{timestamp}.".encode() + body, "sha256")
    return {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
    }


AT_ONCE = 32
"""Webhooks to which a process sends at the same time: more than an account can have, so that slow ones of one account
do not hold up those of others."""

log = logging.getLogger(__name__)

Post = Callable[[str, Mapping[str, str], bytes], int]
"""Sends headers and a body to an address; gives the status of the answer. It takes seconds at most.

Raises:
    NotSent: There is no answer.
"""

Tell = Callable[[Session, Webhook], None]
"""Tells the owner of a webhook that it was switched off."""


class NotSent(Exception):
    """An attempt without an answer; the message says why, for the webhook's owner."""


class Deliverer:
    """Sends deliveries in threads of its own.

    Args:
        secret_key: The installation's, from which those of webhooks follow.
        tell: ``None`` where no mail is sent.
    """

    def __init__(self, database: Database, secret_key: str, post: Post, tell: Tell | None):
        self._database = database
        self._secret_key = secret_key
        self._post = post
        self._tell = tell
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="webhook")
        self._under_way: set[Future[None]] = set()
        self._stopping = Event()

    def send_due(self) -> None:
        """Begin to send what is due, and return; harmless if several processes do it at once.

        A delivery is sent between a claim and the note of its outcome. If the process ends in between, another one
        sends it again, under the same ``webhook-id``.
        """
        self._forget_done()
        while len(self._under_way) < AT_ONCE and (claim := self._claim()) is not None:
            self._under_way.add(self._threads.submit(self._work, claim))

    def finish(self) -> None:
        """Wait for what is being sent."""
        for future in self._under_way:
            future.exception()
        self._forget_done()

    def stop(self) -> None:
        """Begin nothing more, and wait for what is being sent."""
        self._stopping.set()
        self._threads.shutdown()
        self._forget_done()

    def _forget_done(self) -> None:
        """Make room; a thread that failed, since SQL was away, says so here. Its claim lapses."""
        done = {future for future in self._under_way if future.done()}
        self._under_way -= done
        for future in done:
            future.result()

    def _work(self, claim: Claim | None) -> None:
        while claim is not None:
            self._attempt(claim)
            claim = self._claim()

    def _claim(self) -> Claim | None:
        if self._stopping.is_set():
            return None
        with self._database.read() as session:
            if not has_due(session):
                return None
        with self._database.write() as session:
            return claim_delivery(session)

    def _attempt(self, claim: Claim) -> None:
        secret = secret_of(claim.webhook_id, self._secret_key)
        body = orjson.dumps(claim.payload)
        headers = {"Content-Type": "application/json", **signed_headers(secret, claim.delivery_id, now(), body)}
        status, error = None, None
        try:
            status = self._post(claim.url, headers, body)
        except NotSent as not_sent:
            error = str(not_sent)
        if status is not None and not 200 <= status < 300:
            error = f"The receiver answers with status {status}."
        with self._database.write() as session:
            switched_off = settle(session, claim, status, error)
            if switched_off is not None and self._tell is not None:
                self._tell(session, switched_off)
        if error is not None:
            named = (claim.webhook_id, claim.attempt, claim.delivery_id)
            log.info("webhook %s: attempt %d of %s failed: %s", *named, error)
        if switched_off is not None:
            log.warning("webhook %s is switched off: nothing could be delivered for three days", claim.webhook_id)
