"""Signatures of what is sent to webhooks, as Standard Webhooks (standardwebhooks.com) says."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from datetime import datetime

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
