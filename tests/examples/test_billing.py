"""The billing script of the documentation, with signed events of Stripe, against the service and a copy of Stripe."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import pytest
from flask import Flask
from werkzeug.serving import make_server
from werkzeug.test import Client, TestResponse

from tests.callers import Tenant, register_browser
from tests.clients.conftest import missing
from tests.conftest import close_app, make_app, make_settings
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.clients

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "examples" / "billing.py"
TOKEN = "o" * 32
SECRET = "whsec_of_stripe_in_the_tests"
UNPAID = "An invoice is unpaid."


class Stripe:
    """A copy of the part of Stripe's API that the script uses.

    Attributes:
        subscriptions: Present state of each subscription, by ID.
        sessions: Forms sent to create checkout sessions.
        is_away: Whether every request fails.
    """

    def __init__(self) -> None:
        self.subscriptions: dict[str, dict[str, Any]] = {}
        self.sessions: list[dict[str, list[str]]] = []
        self.is_away = False

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path, status, answer = environ["PATH_INFO"], "200 OK", {}
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        if self.is_away:
            status, answer = "500 Internal Server Error", {"error": {"type": "api_error", "message": "Away"}}
        elif path == "/v1/checkout/sessions":
            self.sessions.append(parse_qs(body.decode()))
            answer = {"id": "cs_1", "object": "checkout.session", "url": "https://checkout.stripe.com/c/pay/cs_1"}
        elif path == "/v1/subscriptions":
            data = [each for each in self.subscriptions.values() if each["status"] != "canceled"]
            answer = {"object": "list", "has_more": False, "data": data}
        else:
            answer = self.subscriptions[path.rpartition("/")[2]]
        start_response(status, [("Content-Type", "application/json")])
        return [json.dumps(answer).encode()]


@contextmanager
def serving(application: WSGIApplication) -> Iterator[str]:
    """Serve on a free port of this machine."""
    server = make_server("127.0.0.1", 0, application)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join(PATIENCE_SECONDS)
        server.server_close()


class Billing:
    """The script, connected to the service and to a fake of Stripe."""

    def __init__(self, app: Flask, stripe: Stripe, application: WSGIApplication):
        self.app = app
        self.stripe = stripe
        self._client = Client(application)

    def subscribe(self, tenant: Tenant, plan: str, status: str, subscription: str = "sub_1") -> None:
        """Set the present state of a subscription."""
        metadata = {"account": str(tenant.account_id), "plan": plan}
        self.stripe.subscriptions[subscription] = {
            "id": subscription, "object": "subscription", "status": status, "metadata": metadata,
        }  # fmt: skip

    def event(self, kind: str = "updated", subscription: str = "sub_1", **changes: Any) -> bytes:
        """Return the body of an event."""
        return json.dumps(
            {
                "id": "evt_1",
                "object": "event",
                "type": f"customer.subscription.{kind}",
                "data": {"object": {"id": subscription, "object": "subscription", "status": "active"}},
                **changes,
            }
        ).encode()

    def send(self, body: bytes, *, secret: str = SECRET, age: int = 0) -> TestResponse:
        """Send an event with a signature as Stripe computes it."""
        from stripe import WebhookSignature

        moment = int(time.time()) - age
        signature = WebhookSignature._compute_signature(f"{moment}.{body.decode()}", secret)
        return self.post(body, f"t={moment},v1={signature}")

    def post(self, body: bytes, signature: str | None) -> TestResponse:
        headers = {} if signature is None else {"Stripe-Signature": signature}
        return self._client.post("/stripe", data=body, headers=headers)

    def get(self, path: str) -> TestResponse:
        return self._client.get(path)

    def state(self, tenant: Tenant) -> tuple[str, str | None]:
        """Return an account's plan and, if it is suspended, the reason."""
        client = self.app.test_client()
        response = client.get(
            f"/api/operator/accounts/{tenant.account_id}", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        account = response.get_json()["account"]
        return account["plan"], account["suspension_reason"] if account["status"] == "suspended" else None

    def suspend(self, tenant: Tenant, reason: str) -> None:
        self.app.test_cli_runner().invoke(args=["account", "suspend", tenant.email, "--reason", reason])


@pytest.fixture
def billing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Billing]:
    if find_spec("stripe") is None:
        missing("stripe")
    app = make_app(make_settings(tmp_path, operator_token=TOKEN, default_plan="free"))
    stripe = Stripe()
    with ExitStack() as stack:
        stack.callback(close_app, app)
        for name, value in {
            "SITE_SEARCH_URL": stack.enter_context(serving(app)),
            "STRIPE_API": stack.enter_context(serving(stripe)),
            "STRIPE_API_KEY": "sk_test_1",
            "STRIPE_WEBHOOK_SECRET": SECRET,
            "STRIPE_PRICES": '{"starter": "price_1", "pro": "price_2"}',
            "OPERATOR_TOKEN": TOKEN,
        }.items():
            monkeypatch.setenv(name, value)
        names: dict[str, Any] = {"__name__": "billing"}
        exec(compile(SCRIPT.read_text(), SCRIPT.name, "exec"), names)
        application: Callable[..., Any] = names["application"]
        yield Billing(app, stripe, application)


@pytest.fixture
def tenant(billing: Billing) -> Tenant:
    browser, account_id = register_browser(billing.app, "ann@example.com")
    return Tenant(billing.app, "ann@example.com", account_id, browser, site={})


def test_upgrade_leads_to_stripe_with_the_account_and_the_price(billing: Billing, tenant: Tenant) -> None:
    response = billing.get(f"/upgrade?account={tenant.account_id}&plan=pro")

    assert (response.status_code, response.location) == (303, "https://checkout.stripe.com/c/pay/cs_1")
    (form,) = billing.stripe.sessions
    assert form["line_items[0][price]"] == ["price_2"]
    assert form["subscription_data[metadata][account]"] == [str(tenant.account_id)]
    assert form["subscription_data[metadata][plan]"] == ["pro"]


def test_nonexistent_account_cannot_pay(billing: Billing) -> None:
    assert billing.get("/upgrade?account=999&plan=pro").status_code == 404
    assert billing.stripe.sessions == []


@pytest.mark.parametrize("query", ["", "account=1&plan=golden", "account=x&plan=pro", "plan=pro"])
def test_invalid_upgrade_is_rejected(billing: Billing, query: str) -> None:
    assert billing.get(f"/upgrade?{query}").status_code == 400
    assert billing.stripe.sessions == []


def test_paid_subscription_changes_the_plan_and_its_end_returns_it(billing: Billing, tenant: Tenant) -> None:
    billing.subscribe(tenant, "pro", "active")
    assert billing.send(billing.event("created")).status_code == 200
    assert billing.state(tenant) == ("pro", None)

    billing.subscribe(tenant, "pro", "past_due")
    assert billing.send(billing.event()).status_code == 200
    assert billing.state(tenant) == ("pro", None)

    billing.subscribe(tenant, "pro", "canceled")
    assert billing.send(billing.event("deleted")).status_code == 200
    assert billing.state(tenant) == ("free", None)


def test_unpaid_subscription_suspends_the_account_until_it_is_paid(billing: Billing, tenant: Tenant) -> None:
    billing.subscribe(tenant, "pro", "unpaid")
    billing.send(billing.event())
    assert billing.state(tenant) == ("free", UNPAID)

    billing.subscribe(tenant, "pro", "active")
    billing.send(billing.event())
    assert billing.state(tenant) == ("pro", None)


def test_payment_does_not_end_a_suspension_for_another_reason(billing: Billing, tenant: Tenant) -> None:
    billing.suspend(tenant, "Spam")
    for status in ("unpaid", "active", "canceled"):
        billing.subscribe(tenant, "pro", status)
        assert billing.send(billing.event()).status_code == 200
        assert billing.state(tenant)[1] == "Spam"


def test_replayed_events_change_nothing(billing: Billing, tenant: Tenant) -> None:
    billing.subscribe(tenant, "pro", "active")
    first = billing.event("created")
    billing.send(first)
    billing.subscribe(tenant, "pro", "canceled")
    billing.send(billing.event("deleted"))

    for _ in range(3):
        assert billing.send(first).status_code == 200
        assert billing.state(tenant) == ("free", None)
    assert billing.send(first, age=301).status_code == 400


def test_events_out_of_order_result_in_the_current_state(billing: Billing, tenant: Tenant) -> None:
    billing.subscribe(tenant, "pro", "canceled")
    for kind in ("deleted", "updated", "created"):
        assert billing.send(billing.event(kind)).status_code == 200

    assert billing.state(tenant) == ("free", None)


def test_end_of_an_earlier_subscription_keeps_the_plan_of_a_newer_one(billing: Billing, tenant: Tenant) -> None:
    billing.subscribe(tenant, "starter", "active", "sub_1")
    billing.send(billing.event(subscription="sub_1"))
    billing.subscribe(tenant, "pro", "active", "sub_2")
    billing.send(billing.event(subscription="sub_2"))
    billing.subscribe(tenant, "starter", "canceled", "sub_1")
    billing.send(billing.event("deleted", subscription="sub_1"))

    assert billing.state(tenant) == ("pro", None)


@pytest.mark.parametrize("status", ["canceled", "unpaid"])
def test_earlier_subscription_keeps_the_same_plan_of_a_newer_one(billing: Billing, tenant: Tenant, status: str) -> None:
    billing.subscribe(tenant, "pro", status, "sub_1")
    billing.subscribe(tenant, "pro", "active", "sub_2")
    billing.send(billing.event(subscription="sub_2"))
    assert billing.send(billing.event(subscription="sub_1")).status_code == 200

    assert billing.state(tenant) == ("pro", None)


def test_forged_events_are_rejected(billing: Billing, tenant: Tenant) -> None:
    billing.subscribe(tenant, "pro", "active")
    body = billing.event()
    assert billing.send(body, secret="whsec_another").status_code == 400
    for signature in (None, "", "t=1,v1=00", "nonsense", f"t={int(time.time())},v0=00"):
        assert billing.post(body, signature).status_code == 400
    genuine = billing.event("deleted")
    from stripe import WebhookSignature

    moment = int(time.time())
    signature = WebhookSignature._compute_signature(f"{moment}.{genuine.decode()}", SECRET)
    assert billing.post(body, f"t={moment},v1={signature}").status_code == 400, (
        "the signature must not be valid for another body"
    )

    assert billing.state(tenant) == ("free", None)


@pytest.mark.parametrize("body", [b"", b"{}", b"\xff"])
def test_signed_but_malformed_event_is_rejected(billing: Billing, body: bytes) -> None:
    if body == b"\xff":
        assert billing.post(body, "t=1,v1=00").status_code == 400
    else:
        assert billing.send(body).status_code == 400


def test_event_fails_and_is_retried_if_stripe_or_the_service_is_unavailable(
    billing: Billing, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    billing.subscribe(tenant, "pro", "active")
    billing.stripe.is_away = True
    assert billing.send(billing.event()).status_code == 503
    billing.stripe.is_away = False
    monkeypatch.setenv("OPERATOR_TOKEN", "x" * 32)
    assert billing.send(billing.event()).status_code == 503
    monkeypatch.setenv("OPERATOR_TOKEN", TOKEN)
    assert billing.send(billing.event()).status_code == 200
    assert billing.state(tenant) == ("pro", None)


def test_events_of_deleted_accounts_and_other_subscriptions_are_accepted(billing: Billing, tenant: Tenant) -> None:
    billing.subscribe(tenant, "another product", "active")
    assert billing.send(billing.event()).status_code == 200
    billing.subscribe(tenant, "pro", "active")
    billing.app.test_cli_runner().invoke(args=["account", "delete", tenant.email, "--yes"])
    assert billing.send(billing.event()).status_code == 200
    assert billing.send(billing.event(type="invoice.paid")).status_code == 200
    assert billing.get("/").status_code == 404
