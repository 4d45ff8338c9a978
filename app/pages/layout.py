"""The layout of every page: base template, assets, and notices."""

from __future__ import annotations

import hashlib
import re
from datetime import date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from flask import Flask, Response, render_template, request
from markupsafe import Markup, escape

from app.clock import isoformat, now
from app.crawl.sources.sources import OpenRun, find_first_crawl
from app.feature_settings import FOOTER_LINKS
from app.models import Site
from app.runtime import runtime
from app.web.admission import find_caller
from app.web.auth import ANYONE, SESSION_COOKIE
from app.web.policy import OperationPolicy, set_policy
from app.wording import counted, day_text, duration, moment_text, number
from schemas.accounts import is_email

NOTICES = {
    "site-created": "Site added. Next: add its content.",
    "site-created-silent": "Site added. Its URL doesn’t respond over https or http now: check it. "
    "Next: add its content.",
    "source-created": "Source added. The crawler is reading its pages.",
    "hook-renewed": "Deploy hook URL replaced. The old URL no longer works.",
    "source-updated": "Source saved. Changes take effect with the next run.",
    "source-deleted": "Source deleted. Its pages are being removed from the search.",
    "source-deleted-alone": "Source deleted. Its pages stay in the search.",
    "site-updated": "Site saved.",
    "site-updated-silent": "Site saved. Its URL doesn’t respond over https or http now: check it.",
    "search-settings-updated": "Search settings saved. They take effect with the next search.",
    "learning-on": "Learning from clicks is on. Clicks affect results from tomorrow.",
    "learning-off": "Learning from clicks is off.",
    "examples-removed": "The example searches were removed.",
    "clicks-forgotten": "Learned changes reset. Only clicks from now on count.",
    "search-settings-restored": "Search settings restored.",
    "suggestion-hidden": "The search box no longer suggests this query.",
    "site-paused": "Site paused. It cannot be searched or indexed until you resume it.",
    "site-resumed": "Site resumed.",
    "site-deleted": "Site deleted. It can be restored for 30 days, below.",
    "site-purged": "Site deleted, with all its keys, pages, and statistics.",
    "site-restored": "Site restored, with its keys, pages, and statistics.",
    "document-removed": "Page removed.",
    "collection-created": "Collection created. Next: add its search box to your pages.",
    "collection-updated": "Collection saved. Changes take effect with the next search.",
    "collection-deleted": "Collection deleted, with its keys and statistics.",
    "key-updated": "Key saved.",
    "key-disabled": "Key disabled. It no longer works.",
    "key-enabled": "Key enabled. Its token works again.",
    "key-deleted": "Key deleted. It no longer works.",
    "exposure-dismissed": "Notice dismissed. It returns if the key appears in a web page after you rotate it.",
    "profile-updated": "Profile saved.",
    "password-changed": "Password changed. Your other sessions were logged out.",
    "codes-off": "Two-factor authentication is off. You only need your password to log in.",
    "session-ended": "Session ended.",
    "sessions-ended": "All your other sessions have ended.",
    "role-changed": "Role changed. It takes effect immediately.",
    "member-removed": "Member removed and logged out.",
    "invitation-sent": "Invitation sent. The link in the email works once, within seven days.",
    "invitation-revoked": "Invitation revoked. Its link no longer works.",
    "invitation-accepted": "Welcome! You’re now a member of this account.",
    "reset-requested": "If an account with this email address exists, we’ve sent it a link. "
    "The link works once, within 30 minutes. If you got one in the last ten minutes, use that one.",
    "password-reset": "Password changed. You were logged out everywhere. Log in with the new password.",
    "email-restored": "Your email address is restored. All members were logged out, and API keys are disabled. "
    "We’ve sent you a link for choosing a new password.",
    "email-confirmed": "Your email address is confirmed.",
    "confirmation-sent": "We’ve sent a link to your email address. Open the link to confirm the address.",
    "webhook-updated": "Webhook saved.",
    "webhook-on": "Webhook turned on.",
    "webhook-off": "Webhook turned off. Waiting deliveries were canceled.",
    "webhook-deleted": "Webhook deleted.",
    "redelivered": "The delivery will be sent again within seconds, with the same ID.",
    "operator-plan-changed": "Plan and limits saved. They take effect with the account’s next request.",
    "operator-suspended": "Account suspended.",
    "operator-resumed": "Account resumed.",
    "logged-out": "You’re logged out.",
    "account-deleted": "Your account and all its data have been deleted.",
}
"""Maps a name in ``?notice=`` to its text."""


def register(app: Flask) -> None:
    """Register the filters and globals that templates use."""
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
    app.jinja_env.filters["contact_url"] = contact_url
    app.jinja_env.globals["asset"] = lambda name: f"/static/{name}?v={versions[name]}"
    icons = app.extensions["icons"] = _read_icons(Path(app.static_folder or "") / "icons.svg")
    app.jinja_env.globals["icon"] = icons.__getitem__


def render(template: str, **values: Any) -> str:
    """Render a page. Templates also get the caller as ``who`` (Jinja reserves ``caller``) and the notice of the URL."""
    notice = NOTICES.get(request.args.get("notice", ""))
    settings = runtime().settings
    return render_template(
        template,
        who=find_caller(),
        has_cookie=SESSION_COOKIE in request.cookies,
        notice=notice,
        here=request.path,
        first_crawl=_find_first_crawl,
        operator_contact=settings.operator_contact,
        footer_links=[(text, url) for name, text in FOOTER_LINKS.items() if (url := getattr(settings, name))],
        **values,
    )


def contact_url(contact: str) -> str:
    """Return the URL for the operator's contact; empty if the contact is plain text."""
    if is_email(contact):
        return f"mailto:{quote(contact, safe='@')}"
    return contact if contact.startswith(("https://", "http://")) else ""


def _find_first_crawl(site: Site) -> OpenRun | None:
    """Return the first crawl of a site while it is queued or running."""
    with runtime().database.read() as session:
        return find_first_crawl(session, site)


def render_secret(html: str) -> Response:
    """Return a response for a page whose URL contains a secret, so that browsers don't send the URL to other sites.

    ``no-referrer`` would also hide the origin of the page's form, which the CSRF check needs.
    """
    return Response(html, headers={"Referrer-Policy": "strict-origin"})


def _asset_versions(folder: Path) -> dict[str, str]:
    """Map each asset to a digest of its contents, which makes its URL cacheable."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()[:12]
        for path in folder.rglob("*")
        if path.is_file()
    }


_SYMBOL = re.compile(r'<symbol id="([^"]+)" (viewBox="[^"]+")>(.*?)</symbol>', re.DOTALL)


def _read_icons(sprite: Path) -> dict[str, Markup]:
    """Return each symbol of a sprite as an inline image, because `<use>` of a file depends on the browser's CSP."""
    return {
        name: Markup(f'<svg class="icon" {box} aria-hidden="true">{shapes}</svg>')  # noqa: S704 — our own file
        for name, box, shapes in _SYMBOL.findall(sprite.read_text(encoding="utf-8"))
    }


def day_element(value: date | None) -> Markup:
    """Format a date, or the UTC date of a datetime, as a ``<time>`` element: ``5 May 2024``."""
    return _time_element(value, None if value is None else day_text(value))


def moment_element(value: datetime | None) -> Markup:
    """Format a datetime as a ``<time>`` element: ``5 May 2024, 14:03 UTC``."""
    return _time_element(value, None if value is None else moment_text(value))


def ago_element(value: datetime) -> Markup:
    """Format the time since a datetime as a ``<time>`` element: ``5 minutes ago``."""
    return _time_element(value, f"{duration(max(1, round((now() - value).total_seconds())))} ago")


def _time_element(value: date | None, text: str | None) -> Markup:
    if value is None:
        return Markup("never")
    exact = isoformat(value) if isinstance(value, datetime) else value.isoformat()
    return Markup('<time datetime="{}">{}</time>').format(exact, text)


def code_spans(text: str) -> Markup:
    """Convert a text to HTML, with `` `code` `` as ``<code>`` elements."""
    parts = [escape(part) for part in text.split("`")]
    marked = [Markup("<code>{}</code>").format(part) if odd % 2 else part for odd, part in enumerate(parts)]
    return Markup("").join(marked)
