"""The layout of every page: its frame, its assets, its notices."""

from __future__ import annotations

import hashlib
from datetime import date, datetime
from pathlib import Path
from typing import Any

from flask import Flask, Response, g, render_template, request
from markupsafe import Markup, escape

from app.clock import isoformat, now
from app.runtime import runtime
from app.web.auth import ANYONE, SESSION_COOKIE
from app.web.policy import OperationPolicy, set_policy
from app.wording import counted, day_text, duration, moment_text, number
from schemas.accounts import is_email

NOTICES = {
    "site-created": "Site added. Next: say where its pages are.",
    "site-created-silent": "Site added. Its address answers neither with https nor with http now: check it. "
    "Next: say where its pages are.",
    "source-created": "Source added. Its pages are being found and read.",
    "hook-renewed": "The hook has another address now. The one before does nothing any more.",
    "source-updated": "Source saved. Changes take effect with the next run.",
    "source-deleted": "Source deleted. Its pages are being removed from the search.",
    "source-deleted-alone": "Source deleted. Its pages stay in the search.",
    "site-updated": "Site saved.",
    "site-updated-silent": "Site saved. Its address answers neither with https nor with http now: check it.",
    "search-settings-updated": "Search settings saved. They take effect with the next search.",
    "learning-on": "Results follow clicks from tomorrow on.",
    "learning-off": "Results no longer follow clicks.",
    "clicks-forgotten": "What was learned from clicks is forgotten. Clicks from now on count.",
    "search-settings-restored": "The search settings are those of that time again.",
    "suggestion-hidden": "The search box never suggests this query from now on.",
    "site-paused": "Site paused. It cannot be searched or indexed until you resume it.",
    "site-resumed": "Site resumed.",
    "site-deleted": "Site deleted. It can be restored for 30 days, below.",
    "site-purged": "Site deleted, with all its keys, documents, and statistics.",
    "site-restored": "Site restored, with its keys, documents, and statistics.",
    "document-removed": "Page removed.",
    "key-updated": "Key saved.",
    "key-disabled": "Key disabled. It no longer works.",
    "key-enabled": "Key enabled. Its token works again.",
    "key-deleted": "Key deleted. It no longer works.",
    "exposure-dismissed": "Notice dismissed. It returns if the key is in a web page after you rotate it.",
    "profile-updated": "Profile saved.",
    "password-changed": "Password changed. Your other sessions were logged out.",
    "codes-off": "One-time codes are off. The password alone logs you in.",
    "session-ended": "Session ended.",
    "sessions-ended": "All your other sessions have ended.",
    "role-changed": "Role changed. It takes effect immediately.",
    "member-removed": "Member removed and logged out.",
    "invitation-sent": "Invitation sent. The link in the mail works once, for seven days.",
    "invitation-revoked": "Invitation revoked. Its link no longer works.",
    "invitation-accepted": "Welcome. You are a member of this account now.",
    "reset-requested": "If there is an account with this e-mail, a mail with a link is on its way. "
    "The link works once, for 30 minutes. If you were sent one in the last ten minutes, use that.",
    "password-reset": "Password changed. All your sessions were logged out. Log in with the new password.",
    "email-restored": "Your e-mail address is restored. Everybody was logged out, and API keys are disabled. "
    "A mail with a link to a new password is on its way.",
    "email-confirmed": "Your e-mail address is confirmed.",
    "confirmation-sent": "A mail with a link is on its way to your address. Open the link to confirm it.",
    "webhook-updated": "Webhook saved.",
    "webhook-on": "Webhook switched on.",
    "webhook-off": "Webhook switched off. Nothing is sent to it; what waited was given up.",
    "webhook-deleted": "Webhook deleted.",
    "redelivered": "Sent again within seconds, under the same id.",
    "logged-out": "You are logged out.",
    "account-deleted": "Your account and all its data have been deleted.",
}
"""Name in ``?notice=`` to what it says."""


def register(app: Flask) -> None:
    """Give templates what they use."""
    versions = _asset_versions(Path(app.static_folder or ""))
    app.config["SEND_FILE_MAX_AGE_DEFAULT"] = 86_400
    set_policy(app, "static", OperationPolicy(ANYONE, uncounted=True, without_rate_headers=True, reflects_nothing=True))
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    app.jinja_env.filters.update(
        number=number,
        counted=counted,
        duration=duration,
        day_text=day_text,
        day_element=day_element,
        moment_element=moment_element,
        moment_text=moment_text,
        ago_element=ago_element,
        code_spans=code_spans,
    )
    app.jinja_env.tests["email_address"] = is_email
    app.jinja_env.globals["asset"] = lambda name: f"/static/{name}?v={versions[name]}"


def render(template: str, **values: Any) -> str:
    """A page. Templates also see who calls (``caller`` is a word of Jinja) and the notice that the address asks for."""
    notice = NOTICES.get(request.args.get("notice", ""))
    return render_template(
        template,
        who=g.get("caller"),
        has_cookie=SESSION_COOKIE in request.cookies,
        notice=notice,
        here=request.path,
        operator_contact=runtime().settings.operator_contact,
        **values,
    )


def render_secret(html: str) -> Response:
    """A page whose address holds a secret, which no other site is told.

    Without any referrer, browsers would not say either that the page's form comes from here.
    """
    return Response(html, headers={"Referrer-Policy": "strict-origin"})


def _asset_versions(folder: Path) -> dict[str, str]:
    """File to a digest of its contents: an address that changes with it may be kept by browsers."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()[:12]
        for path in folder.rglob("*")
        if path.is_file()
    }


def day_element(value: date | None) -> Markup:
    """``5 May 2024`` as a ``<time>``; of a moment, its day in UTC."""
    return _time_element(value, None if value is None else day_text(value))


def moment_element(value: datetime | None) -> Markup:
    """``5 May 2024, 14:03 UTC`` as a ``<time>``."""
    return _time_element(value, None if value is None else moment_text(value))


def ago_element(value: datetime) -> Markup:
    """``5 minutes ago`` as a ``<time>``."""
    return _time_element(value, f"{duration(max(1, round((now() - value).total_seconds())))} ago")


def _time_element(value: date | None, text: str | None) -> Markup:
    if value is None:
        return Markup("never")
    exact = isoformat(value) if isinstance(value, datetime) else value.isoformat()
    return Markup('<time datetime="{}">{}</time>').format(exact, text)


def code_spans(text: str) -> Markup:
    """Text in which `` `code` `` stands out."""
    parts = [escape(part) for part in text.split("`")]
    marked = [Markup("<code>{}</code>").format(part) if odd % 2 else part for odd, part in enumerate(parts)]
    return Markup("").join(marked)
