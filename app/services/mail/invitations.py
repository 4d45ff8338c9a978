"""The mail that brings an invitation."""

from __future__ import annotations

from app.models import Invitation
from app.services.mail.letters import Letter, Link
from app.wording import moment_text

KIND = "invitation"


def write_invitation(invitation: Invitation, account: str, url: str, public_url: str) -> Letter:
    """A letter to somebody who is invited to an account.

    Args:
        account: The account's name.
        url: The invitation's link.
        public_url: Base URL of this service.
    """
    return Letter(
        f"Join {account} at the site search",
        (
            f"{account} invites you to its account at {public_url}, as {invitation.role}. To accept, open this page "
            "and choose a password:",
            Link("Accept the invitation", url),
            f"The link works once, until {moment_text(invitation.expires_at)}.",
            "If you do not know who this is, ignore this mail. Nothing happens then.",
        ),
    )
