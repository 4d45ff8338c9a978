"""Sell plans with Stripe Checkout: python billing.py, one process, behind a proxy that terminates TLS."""

import json
from os import environ as env
from urllib.parse import parse_qs
from wsgiref.simple_server import make_server

import requests
import stripe

SEARCH, FREE_PLAN = env["SITE_SEARCH_URL"].rstrip("/"), env.get("FREE_PLAN", "free")
PRICES, STRIPE = json.loads(env["STRIPE_PRICES"]), env.get("STRIPE_API", "https://api.stripe.com")
UNPAID, PAYING = "An invoice is unpaid.", ("active", "trialing", "past_due")  # If past due, Stripe tries again.
client = stripe.StripeClient(env["STRIPE_API_KEY"], base_addresses={"api": STRIPE})


def call(method, account, path="", body=None):
    url, auth = f"{SEARCH}/api/operator/accounts/{account}{path}", {"Authorization": f"Bearer {env['OPERATOR_TOKEN']}"}
    response = requests.request(method, url, json=body, headers=auth, timeout=30)
    response.raise_for_status()
    return response.json()["account"]


def apply(subscription_id):
    """Give the account the plan that its subscription pays for now."""
    subscription = client.v1.subscriptions.retrieve(subscription_id).to_dict()
    account, plan = (subscription["metadata"].get(name) for name in ("account", "plan"))
    if account is None or plan not in PRICES:
        return  # A subscription to something else.
    shown, status = call("GET", account), subscription["status"]
    if status in PAYING:
        call("PATCH", account, body={"plan": plan})
    elif any(each["metadata"].get("account") == account and each["status"] in PAYING for each in
        map(stripe.StripeObject.to_dict, client.v1.subscriptions.list({"limit": 100}).auto_paging_iter())):  # fmt: skip
        return  # Another subscription, such as a newer one, pays for the account.
    elif status == "unpaid" and shown["status"] == "active":
        call("POST", account, "/suspend", {"reason": UNPAID})
    elif status == "canceled" and shown["plan"] == plan:
        call("PATCH", account, body={"plan": FREE_PLAN})
    if status in ("active", "trialing", "canceled") and shown["suspension_reason"] == UNPAID:
        call("POST", account, "/resume", {})


def checkout(query):
    """Return the address of Stripe's payment page, to which UPGRADE_URL leads."""
    account, plan = (parse_qs(query).get(name, [""])[0] for name in ("account", "plan"))
    price, _ = PRICES[plan], call("GET", int(account))  # An unknown plan gets 400, an unknown account 404.
    return client.v1.checkout.sessions.create({
        "mode": "subscription", "line_items": [{"price": price, "quantity": 1}],
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
                signature, secret = environ.get("HTTP_STRIPE_SIGNATURE", ""), env["STRIPE_WEBHOOK_SECRET"]
                stripe.WebhookSignature.verify_header(body, signature, secret, tolerance=300)
                if (event := json.loads(body))["type"].startswith("customer.subscription."):
                    apply(event["data"]["object"]["id"])
                status = "200 OK"
    except (KeyError, ValueError, stripe.SignatureVerificationError):
        status = "400 Bad Request"
    except (OSError, stripe.StripeError) as error:
        print(error)
        gone = isinstance(error, requests.HTTPError) and error.response.status_code == 404  # A deleted account.
        outcome = "200 OK" if environ["REQUEST_METHOD"] == "POST" else "404 Not Found"
        status = outcome if gone else "503 Service Unavailable"  # After a 503, Stripe sends the event again.
    start_response(status, headers)
    return [status.encode()]


if __name__ == "__main__":
    make_server("127.0.0.1", int(env.get("PORT", "8001")), application).serve_forever()
