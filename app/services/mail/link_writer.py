"""Mails that hold a link that works once: its token is made when the mail is sent, and SQL gets a hash of it."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from typing import ClassVar

from sqlalchemy.orm import Session

from app.models import Mail
from app.services.mail.letters import Letter
from app.services.mail.messages import Draft
from app.storage.database import Database
from app.tokens import hash_token


class LinkWriter(ABC):
    """Writes the mails.

    Args:
        public_url: Base URL of this service.
        secret: With which tokens are hashed.
    """

    path: ClassVar[str]
    """Of the page that the link opens."""

    def __init__(self, database: Database, public_url: str, secret: str):
        self._database = database
        self._public_url = public_url
        self._secret = secret

    def write(self, mail: Mail) -> Draft | None:
        """Make a link, and the mail that holds it; ``None`` if there is nothing to send any more."""
        token = secrets.token_urlsafe(32)
        url = f"{self._public_url}{self.path}?token={token}"
        with self._database.write() as session:
            written = self.compose(session, mail, hash_token(token, self._secret), url)
        if written is None:
            return None
        recipient, letter = written
        return Draft(recipient, letter.subject, letter.text, letter.html)

    @abstractmethod
    def compose(self, session: Session, mail: Mail, token_hash: str, url: str) -> tuple[str, Letter] | None:
        """Keep the link's hash and say to whom what is written; ``None`` if there is nothing to send any more."""
