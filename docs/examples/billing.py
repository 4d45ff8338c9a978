"""Sell plans with Stripe Checkout:  python billing.py, behind a proxy that terminates TLS.

Run one process. Events may arrive twice and in any order: a subscription's present state is read from Stripe."""

import json
import os
import sys
from urllib.parse import parse_qs
from wsgiref.simple_server import make_server

import requests
import stripe

SEARCH = os.environ["SITE_SEARCH_URL"].rstrip("/")
PRICES = json.loads(os.environ["STRIPE_PRICES"])  # {"starter": "price_…", "pro": "price_…"}
FREE_PLAN, UNPAID = os.environ.get("FREE_PLAN", "free"), "An invoice is unpaid."
API = {"api": os.environ["STRIPE_API"]} if "STRIPE_API" in os.environ else {}  # Another address, for tests.
client = stripe.StripeClient(os.environ["STRIPE_API_KEY"], base_addresses=API)


def call(method, account, path="", body=None):
    url = f"{SEARCH}/api/operator/accounts/{account}{path}"
    headers = {"Authorization": f"Bearer {os.environ['OPERATOR_TOKEN']}"}
    response = requests.request(method, url, json=body, headers=headers, timeout=30)
    response.raise_for_status()
    return response.json()["account"]


def apply(subscription_id):
    """Give the account the plan that its subscription pays for now."""
    subscription = client.v1.subscriptions.retrieve(subscription_id).to_dict()
    account, plan = (subscription["metadata"].get(name) for name in ("account", "plan"))
    if account is None or plan not in PRICES:
        return  # A subscription to something else.
    shown, status = call("GET", account), subscription["status"]
    if status == "unpaid" and shown["status"] == "active":
        call("POST", account, "/suspend", {"reason": UNPAID})
    if status in ("active", "trialing", "past_due"):  # While it is past due, Stripe tries again.
        call("PATCH", account, body={"plan": plan})
    elif status == "canceled" and shown["plan"] == plan:  # Otherwise, a newer subscription pays for another plan.
        call("PATCH", account, body={"plan": FREE_PLAN})
    if status in ("active", "trialing", "canceled") and shown["suspension_reason"] == UNPAID:
        call("POST", account, "/resume", {})


def checkout(query):
    """Return the address of Stripe's payment page, to which UPGRADE_URL leads."""
    account, plan = (parse_qs(query).get(name, [""])[0] for name in ("account", "plan"))
    return client.v1.checkout.sessions.create({
        "mode": "subscription", "line_items": [{"price": PRICES[plan], "quantity": 1}],
        "subscription_data": {"metadata": {"account": str(int(account)), "plan": plan}},
        "success_url": f"{SEARCH}/dashboard", "cancel_url": f"{SEARCH}/plans",
    }).url  # fmt: skip


def application(environ, start_response):
    status, headers = "404 Not Found", [("Content-Type", "text/plain")]
    try:
        match environ["REQUEST_METHOD"], environ["PATH_INFO"]:
            case "GET", "/upgrade":
                status, headers = "303 See Other", [("Location", checkout(environ["QUERY_STRING"]))]
            case "POST", "/stripe":
                body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)).decode()
                signature, secret = environ.get("HTTP_STRIPE_SIGNATURE", ""), os.environ["STRIPE_WEBHOOK_SECRET"]
                stripe.WebhookSignature.verify_header(body, signature, secret, tolerance=300)
                if (event := json.loads(body))["type"].startswith("customer.subscription."):
                    apply(event["data"]["object"]["id"])
                status = "200 OK"
    except (KeyError, ValueError, stripe.SignatureVerificationError):
        status = "400 Bad Request"
    except (OSError, stripe.StripeError) as error:
        print(error, file=sys.stderr)
        gone = isinstance(error, requests.HTTPError) and error.response.status_code == 404  # A deleted account.
        status = "200 OK" if gone else "503 Service Unavailable"  # After a 503, Stripe sends the event again.
    start_response(status, headers)
    return [status.encode()]


if __name__ == "__main__":
    make_server("127.0.0.1", int(os.environ.get("PORT", "8001")), application).serve_forever()
