"""The mail that tells an account's owner that the runs of a source keep failing."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy.orm import Session

from app.models import Account, Site, Source
from app.services.mail.letters import Letter, Link
from app.services.mail.queue import queue_mail

KIND = "failed_runs"


def tell_of_failures(
    session: Session, source: Source, site: Site, error: Mapping[str, str] | None, public_url: str
) -> None:
    """Queue the mail about a source whose last two runs failed.

    Args:
        error: ``code`` and ``message`` of why the second one did.
        public_url: The service's address.
    """
    account = session.get_one(Account, site.account_id)
    letter = write_letter(source, site.name, "" if error is None else error["message"], public_url)
    queue_mail(session, account.email, letter.subject, letter.text, letter.html, kind=KIND, account_id=account.id)


def write_letter(source: Source, site_name: str, reason: str, public_url: str) -> Letter:
    """A letter about a source, and what its owner can do."""
    return Letter(
        f"The last two crawls of {source.url} failed",
        (
            f"The last two crawls of {source.url} for {site_name} failed. {reason}".rstrip(),
            "Its pages stay in the search as they were last read. What changed since may be missing.",
            Link("See why, and run it again", f"{public_url}/api/sites/{source.site_id}/sources/{source.id}"),
            "Further failures are not told until a crawl of this source has succeeded.",
            f"The site search at {public_url} sent this mail automatically.",
        ),
    )
