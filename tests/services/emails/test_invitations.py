"""Invitations by email."""

from __future__ import annotations

import re

from flask import Flask
from sqlalchemy import select

from app.models import Invitation, Member
from app.operations.invitations import EMAILED_INVITATIONS
from app.runtime import Runtime
from app.tokens import hash_token, make_invitation_token
from tests.callers import Tenant, accept_invitation, member_id, register_tenant
from tests.email_server import MailServer
from tests.pages.people import person_of
from tests.responses import assert_error, assert_ok

BO = "bo@example.com"


def invite(tenant: Tenant) -> str:
    """Invite Bo. Returns the ID of the invitation."""
    answer = assert_ok(tenant.private.post("/api/invitations", json={"email": BO}), 201)
    return str(answer["invitation"]["id"])


def is_confirmed(part: Runtime) -> bool:
    with part.database.read() as session:
        return session.scalars(select(Member).where(Member.email == BO)).one().email_confirmed


def links_of(server: MailServer) -> list[str]:
    """Return the links in the received emails."""
    link = r"^https://search\.example\.com(/invitations/svc_inv_\S+)$"
    return [found for mail in server.emails for found in re.findall(link, mail.text, re.MULTILINE)]


def test_invitation_link_is_only_in_the_email_and_confirms_the_address(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    """With the link in the response, inviters could join in another person's name, with that person's email
    address."""
    created = tenant.private.post("/api/invitations", json={"email": BO})
    invitation = assert_ok(created, 201)["invitation"]
    assert created.get_json() == {"success": True, "invitation": invitation}
    part.email_sender.send_due()

    (mail,) = server.emails
    assert mail.to == [BO]
    (link,) = links_of(server)
    assert link in mail.html
    assert "editor" in mail.text
    accept_invitation(app, link)
    assert member_id(tenant, BO)
    assert is_confirmed(part), "only the owner of the mailbox has the link"


def test_renewing_an_invitation_emails_a_new_link_and_invalidates_the_old_one(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    renewed = assert_ok(tenant.private.post(f"/api/invitations/{invite(tenant)}/renew"))
    assert renewed.keys() == {"success", "invitation"}
    part.email_sender.send_due()
    old, new = links_of(server)
    assert_error(app.test_client().get(old), 404, "invitation_not_found")
    accept_invitation(app, new)


def test_invitation_link_that_was_not_mailed_does_not_confirm_the_address(
    app: Flask, part: Runtime, tenant: Tenant
) -> None:
    """The link was created before mail was set up, or by the previous version."""
    invitation_id, token = invite(tenant), make_invitation_token()
    with part.database.write() as session:
        invitation = session.get_one(Invitation, invitation_id)
        invitation.token_hash, invitation.is_mailed = hash_token(token, part.settings.secret_key), False
    accept_invitation(app, f"/invitations/{token}")
    assert not is_confirmed(part)


def test_invitation_page_confirms_that_the_email_was_sent_without_the_link(
    app: Flask, server: MailServer, part: Runtime
) -> None:
    person = person_of(register_tenant(app, "ann@example.com"))
    person.go("/api/members")
    person.press("Create invitation", email=BO)
    assert person.notice.startswith("Invitation sent.")
    assert "svc_inv_" not in person.response.text
    person.press("Send again")
    assert person.notice.startswith("Invitation sent.")
    part.email_sender.send_due()
    assert [mail.to for mail in server.emails].count([BO]) == 2


def test_invitation_emails_are_rate_limited(app: Flask) -> None:
    tenant = register_tenant(app, "ann@example.com")
    path = f"/api/invitations/{invite(tenant)}/renew"
    for _ in range(EMAILED_INVITATIONS - 1):
        assert_ok(tenant.private.post(path))

    response = tenant.private.post(path)

    assert_error(response, 429, "rate_limit_exceeded")
