"""The end of the weekly digest, for whoever follows the link in one, and for programs of mails (RFC 8058)."""

from __future__ import annotations

from flask import request

from app.errors import field_error
from app.pages.layout import render
from app.runtime import runtime
from app.services.mail.digests import read_token, unsubscribe


def show_unsubscribe() -> str:
    """The page with the button: to look at it changes nothing, since programs that check mails open every link."""
    _account_of_link()
    return _page(is_done=False)


def stop_digest() -> str:
    """End the digest, for a person's button or the one request of a mail's program; that one follows no redirect."""
    account_id = _account_of_link()
    with runtime().database.write() as session:
        unsubscribe(session, account_id)
    return _page(is_done=True)


def _page(*, is_done: bool) -> str:
    return render("digest_unsubscribe.html", is_done=is_done, token=request.args["token"])


def _account_of_link() -> int:
    account_id = read_token(request.args.get("token", ""), runtime().settings.secret_key)
    if account_id is None:
        raise field_error("token", "invalid", "is none of a mail of ours; open the link as it stands in the mail")
    return account_id
