"""Invitations by mail."""

from __future__ import annotations

import re

from flask import Flask

from app.operations.members import MAILED_INVITATIONS
from app.runtime import Runtime
from tests.answers import assert_error, assert_ok
from tests.callers import Tenant, accept_invitation, member_id, register_tenant
from tests.mail_server import MailServer
from tests.pages.people import person_of

BO = "bo@example.com"


def invite(tenant: Tenant) -> str:
    return str(assert_ok(tenant.private.post("/api/invitations", json={"email": BO}), 201)["url"])


def test_who_is_invited_gets_the_link(app: Flask, part: Runtime, tenant: Tenant, server: MailServer) -> None:
    url = invite(tenant)
    part.mailer.send_due()

    (mail,) = server.mails
    assert url.startswith("https://search.example.com/invitations/svc_inv_")
    assert re.search(rf"^{re.escape(url)}$", mail.text, re.MULTILINE)
    assert url in mail.html
    assert "editor" in mail.text
    accept_invitation(app, url.removeprefix("https://search.example.com"))
    assert member_id(tenant, BO)


def test_a_renewed_invitation_is_sent_again(part: Runtime, tenant: Tenant, server: MailServer) -> None:
    invite(tenant)
    (invitation,) = assert_ok(tenant.private.get("/api/invitations"))["invitations"]
    url = assert_ok(tenant.private.post(f"/api/invitations/{invitation['id']}/renew"))["url"]
    part.mailer.send_due()
    assert [url in mail.text for mail in server.mails] == [False, True]


def test_the_page_says_that_a_mail_was_sent(app: Flask) -> None:
    person = person_of(register_tenant(app, "ann@example.com"))
    person.go("/api/members")
    person.press("Create invitation", email=BO)
    assert f"We sent this link to {BO}" in person.page.text


def test_strangers_are_not_flooded(app: Flask) -> None:
    tenant = register_tenant(app, "ann@example.com")
    invite(tenant)
    (invitation,) = assert_ok(tenant.private.get("/api/invitations"))["invitations"]
    path = f"/api/invitations/{invitation['id']}/renew"
    for _ in range(MAILED_INVITATIONS - 1):
        assert_ok(tenant.private.post(path))

    response = tenant.private.post(path)

    assert_error(response, 429, "rate_limit_exceeded")
