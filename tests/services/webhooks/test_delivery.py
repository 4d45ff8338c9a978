"""Events are delivered to webhooks: signed, once as far as HTTP allows, retried after failures, and within limits."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import time_machine
from flask import Flask
from sqlalchemy import select
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError

from app import runtime as runtime_module
from app.models import Webhook, WebhookDelivery
from app.operations.operator import resume_account, suspend_account
from app.runtime import Runtime, create_runtime
from app.services import webhooks as queue
from app.services.webhook_delivery import NotSent
from app.services.webhooks import CLAIM, MAX_FINISHED, OFF_AFTER, TRIES, announce
from tests.callers import Tenant
from tests.conftest import close_app, make_app, make_settings
from tests.email_server import MailServer, mail_settings
from tests.patience import PATIENCE_SECONDS
from tests.responses import assert_error, assert_ok
from tests.services.webhooks.receiver import DATA, Receiver, add_webhook, deliveries, receiving, send, tell

NOON = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)


@pytest.fixture
def app(tmp_path: Path, server: MailServer) -> Iterator[Flask]:
    """An installation that sends email, even to the machine's own addresses."""
    made = make_app(make_settings(tmp_path, crawl_private_addresses=True, **mail_settings(server)))
    yield made
    close_app(made)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(NOON, tick=False) as made:
        yield made


def show(tenant: Tenant, webhook: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = assert_ok(tenant.private.get(f"/api/webhooks/{webhook['id']}"))["webhook"]
    return shown


def again_at(delivery: dict[str, Any]) -> datetime:
    """Return the time of the next attempt, to the millisecond."""
    return datetime.fromisoformat(delivery["next_attempt_at"]) + timedelta(milliseconds=1)


def test_suspended_accounts_deliveries_wait_until_it_is_resumed(
    app: Flask, tenant: Tenant, receiver: Receiver, clock: time_machine.Traveller
) -> None:
    """A webhook may be the reason for the suspension, and no data of an account may be lost."""
    webhook, _ = add_webhook(tenant, receiver.base_url)
    receiver.status = 503
    tell(tenant)
    send(app)
    tell(tenant)
    part: Runtime = app.extensions["runtime"]
    suspend_account(part, tenant.account_id, "Please pay your bill.")

    for _ in range(10):
        clock.shift(timedelta(days=1))
        send(app)
    assert len(receiver.received) == 1

    resume_account(part, tenant.account_id)
    receiver.status = 200
    send(app)
    assert len(set(receiver.ids)) == 2
    assert {delivery["status"] for delivery in deliveries(tenant, webhook)} == {"delivered"}
    assert show(tenant, webhook)["active"] is True


def test_delivery_running_during_a_suspension_is_recorded_and_later_ones_wait(
    app: Flask, tenant: Tenant, receiver: Receiver
) -> None:
    webhook, _ = add_webhook(tenant, receiver.base_url)
    part: Runtime = app.extensions["runtime"]
    receiver.wait = lambda path: suspend_account(part, tenant.account_id, "")
    tell(tenant)
    tell(tenant)
    send(app)
    assert len(receiver.received) == 1

    resume_account(part, tenant.account_id)
    assert sorted(delivery["status"] for delivery in deliveries(tenant, webhook)) == ["delivered", "waiting"]


class TestSigning:
    def test_signature_is_verified_by_another_implementation_of_the_standard(
        self, app: Flask, tenant: Tenant, receiver: Receiver
    ) -> None:
        webhook, secret = add_webhook(tenant, f"{receiver.base_url}/hook?a=b")
        tell(tenant)
        send(app)

        (received,) = receiver.received
        assert received.path == "/hook?a=b"
        assert received.headers["content-type"] == "application/json"
        assert received.headers["user-agent"].startswith("SiteSearchBot/")
        body = Verifier(secret).verify(received.body, received.headers)
        (delivery,) = deliveries(tenant, webhook)
        assert body == {"type": "quota.warning", "timestamp": delivery["created_at"], "data": DATA}
        assert delivery["payload"] == body
        assert delivery["id"] == received.headers["webhook-id"]
        assert (delivery["status"], delivery["attempts"], delivery["response_status"]) == ("delivered", 1, 200)
        with pytest.raises(WebhookVerificationError):
            Verifier(secret).verify(received.body.replace(b"80", b"81"), received.headers)

    def test_each_webhook_has_its_own_secret(self, app: Flask, tenant: Tenant, receiver: Receiver) -> None:
        (_, first), (_, second) = (add_webhook(tenant, f"{receiver.base_url}/{name}") for name in "ab")
        tell(tenant)
        send(app)

        assert first != second
        by_path = {received.path: received for received in receiver.received}
        Verifier(first).verify(by_path["/a"].body, by_path["/a"].headers)
        with pytest.raises(WebhookVerificationError):
            Verifier(second).verify(by_path["/a"].body, by_path["/a"].headers)

    def test_retry_keeps_the_delivery_id_and_signs_its_own_time(
        self, app: Flask, tenant: Tenant, receiver: Receiver, clock: time_machine.Traveller
    ) -> None:
        webhook, secret = add_webhook(tenant, receiver.base_url)
        tell(tenant)
        receiver.status = 500
        send(app)
        clock.move_to(again_at(deliveries(tenant, webhook)[0]))
        receiver.status = 204
        send(app)

        first, second = receiver.received
        assert first.headers["webhook-id"] == second.headers["webhook-id"]
        assert first.body == second.body
        assert int(second.headers["webhook-timestamp"]) - int(first.headers["webhook-timestamp"]) >= 300
        Verifier(secret).verify(second.body, second.headers)
        assert deliveries(tenant, webhook)[0]["status"] == "delivered"

    def test_secret_is_shown_once_and_neither_stored_nor_logged(
        self, app: Flask, part: Runtime, tenant: Tenant, receiver: Receiver, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        webhook, secret = add_webhook(tenant, receiver.base_url)
        receiver.status = 500
        tell(tenant)
        send(app)
        path = f"/api/webhooks/{webhook['id']}"
        assert_ok(tenant.private.put(path, json={"events": ["run.failed"]}))
        shown = [
            tenant.private.get(path).get_data(as_text=True)
            for path in ("/api/webhooks", path, f"{path}/deliveries", "/api/audit-log")
        ]
        with part.database.read() as session:
            rows = session.execute(select(Webhook.__table__)).all()

        assert webhook["id"] in caplog.text
        assert all(webhook["id"] in text for text in (*shown[:2], shown[3]))
        random_part = secret.removeprefix("whsec_")
        assert random_part not in "".join([*shown, str(rows), caplog.text])


class TestFailures:
    def test_failed_delivery_is_tried_eight_times_within_a_day_with_growing_pauses(
        self, app: Flask, tenant: Tenant, receiver: Receiver, clock: time_machine.Traveller
    ) -> None:
        webhook, _ = add_webhook(tenant, receiver.base_url)
        receiver.status = 503
        tell(tenant)
        moments = []
        while (delivery := deliveries(tenant, webhook)[0])["status"] == "waiting":
            clock.move_to(again_at(delivery))
            moments.append(again_at(delivery))
            send(app)
            send(app)

        assert len(moments) == len(receiver.received) == TRIES == 8
        pauses = [(after - before).total_seconds() for before, after in pairwise(moments)]
        assert timedelta(hours=12) <= moments[-1] - moments[0] <= timedelta(days=1)
        assert all(pause >= 340 * 2**number for number, pause in enumerate(pauses))
        assert (delivery["status"], delivery["attempts"], delivery["response_status"]) == ("failed", 8, 503)
        assert delivery["error"] == "The receiver returned status 503."
        clock.shift(timedelta(days=1))
        send(app)
        assert len(receiver.received) == 8

    @pytest.mark.parametrize("status", [301, 302, 307, 404, 410, 500])
    def test_non_success_status_is_a_failure_and_redirects_are_not_followed(
        self, app: Flask, tenant: Tenant, receiver: Receiver, status: int
    ) -> None:
        webhook, _ = add_webhook(tenant, f"{receiver.base_url}/first")
        receiver.status, receiver.headers = status, {"Location": f"{receiver.base_url}/second"}
        tell(tenant)
        send(app)

        assert [received.path for received in receiver.received] == ["/first"]
        (delivery,) = deliveries(tenant, webhook)
        assert (delivery["status"], delivery["response_status"]) == ("waiting", status)

    def test_receiver_that_does_not_respond_times_out(
        self, app: Flask, tenant: Tenant, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert runtime_module.WEBHOOK_SECONDS == 10
        monkeypatch.setattr(runtime_module, "WEBHOOK_SECONDS", 0.2)
        webhook, _ = add_webhook(tenant, receiver.base_url)
        given_up = threading.Event()
        receiver.wait = lambda path: given_up.wait(PATIENCE_SECONDS)
        tell(tenant)
        send(app)
        given_up.set()

        (delivery,) = deliveries(tenant, webhook)
        assert (delivery["status"], delivery["response_status"]) == ("waiting", None)
        assert delivery["error"] == "127.0.0.1 takes too long to respond."

    def test_unresolvable_host_name_is_a_failure(self, app: Flask, tenant: Tenant) -> None:
        webhook, _ = add_webhook(tenant, "https://nobody.invalid/hook")
        tell(tenant)
        send(app)

        assert deliveries(tenant, webhook)[0]["error"] == "The host name nobody.invalid does not resolve."

    def test_slow_receiver_does_not_delay_other_deliveries(
        self, app: Flask, tenant: Tenant, receiver: Receiver
    ) -> None:
        add_webhook(tenant, f"{receiver.base_url}/slow")
        tell(tenant)
        quick = [add_webhook(tenant, f"{receiver.base_url}/{number}") for number in range(3)]
        tell(tenant)
        answered = {f"/{number}": threading.Event() for number in range(3)}

        def wait(path: str) -> None:
            if path == "/slow":  # It responds only when all others have been delivered.
                assert all(event.wait(PATIENCE_SECONDS) for event in answered.values())
            else:
                answered[path].set()

        receiver.wait = wait
        send(app)

        assert [deliveries(tenant, webhook)[0]["status"] for webhook, _ in quick] == ["delivered"] * 3
        assert sorted(received.path for received in receiver.received) == ["/0", "/1", "/2", "/slow", "/slow"]
        assert receiver.most_at_once["/slow"] == 1

    def test_background_jobs_send_deliveries(
        self, app: Flask, part: Runtime, tenant: Tenant, receiver: Receiver
    ) -> None:
        add_webhook(tenant, receiver.base_url)
        tell(tenant)

        app.extensions["jobs"].run_all()
        part.deliverer.finish()

        assert len(receiver.received) == 1


class TestBounds:
    @pytest.fixture
    def app(self, tmp_path: Path) -> Iterator[Flask]:
        """An installation on the public internet."""
        made = make_app(make_settings(tmp_path))
        yield made
        close_app(made)

    def test_host_name_that_resolves_to_a_private_address_is_not_connected_to(
        self, app: Flask, tenant: Tenant, receiver: Receiver
    ) -> None:
        port = receiver.base_url.rpartition(":")[2]
        webhook, _ = add_webhook(tenant, f"http://localhost:{port}/")
        tell(tenant)
        send(app)

        assert receiver.received == []
        assert deliveries(tenant, webhook)[0]["error"] == "localhost has an IP address that is not public."

    def test_no_connection_is_made_to_a_stored_url_that_is_no_longer_allowed(
        self, app: Flask, part: Runtime, tenant: Tenant, receiver: Receiver
    ) -> None:
        webhook, _ = add_webhook(tenant, "https://example.com/")
        with part.database.write() as session:
            session.get_one(Webhook, webhook["id"]).url = receiver.base_url
        tell(tenant)
        send(app)

        assert receiver.received == []
        assert deliveries(tenant, webhook)[0]["error"] == "127.0.0.1 has an IP address that is not public."


class TestProcesses:
    def test_two_processes_send_each_delivery_once_and_one_at_a_time_per_webhook(
        self, part: Runtime, tenant: Tenant, receiver: Receiver
    ) -> None:
        webhooks = [add_webhook(tenant, f"{receiver.base_url}/{number}")[0] for number in range(3)]
        for _ in range(8):
            tell(tenant)
        other = create_runtime(part.settings, background=False)
        gate = threading.Barrier(4)

        def deliver(one: Runtime) -> None:
            gate.wait(PATIENCE_SECONDS)
            one.deliverer.send_due()

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(deliver, [part, other] * 2))
        for one in (part, other):
            one.deliverer.finish()
        send(tenant.app)
        other.deliverer.stop()
        other.database.dispose()

        sent = sorted(receiver.ids)
        assert sent == sorted({each["id"] for webhook in webhooks for each in deliveries(tenant, webhook)})
        assert len(sent) == 24
        assert receiver.most_at_once == {"/0": 1, "/1": 1, "/2": 1}

    def test_delivery_claimed_by_a_killed_process_is_sent_later_under_the_same_id(
        self, app: Flask, part: Runtime, tenant: Tenant, receiver: Receiver, clock: time_machine.Traveller
    ) -> None:
        webhook, _ = add_webhook(tenant, receiver.base_url)
        tell(tenant)
        with part.database.write() as session:
            claim = queue.claim_delivery(session)  # Killed before or after it was sent.
        assert claim is not None
        clock.shift(CLAIM - timedelta(seconds=1))
        send(app)
        assert receiver.received == []

        clock.shift(timedelta(seconds=1))
        send(app)

        assert receiver.ids == [claim.delivery_id]
        with part.database.write() as session:
            queue.settle(session, claim, None, "Too late.")
        (delivery,) = deliveries(tenant, webhook)
        assert (delivery["status"], delivery["error"], delivery["attempts"]) == ("delivered", None, 2)

    def test_delivery_is_sent_only_if_its_transaction_commits(
        self, app: Flask, part: Runtime, tenant: Tenant, receiver: Receiver
    ) -> None:
        add_webhook(tenant, receiver.base_url)
        with part.database.writing_sessions() as session:
            announce(session, tenant.account_id, "quota.warning", DATA)
            session.rollback()
        send(app)
        assert receiver.received == []

        tell(tenant)
        send(app)
        assert len(receiver.received) == 1

    def test_webhook_deleted_during_a_delivery_leaves_no_deliveries(
        self, app: Flask, part: Runtime, tenant: Tenant, receiver: Receiver
    ) -> None:
        webhook, _ = add_webhook(tenant, receiver.base_url)
        tell(tenant)
        receiver.wait = lambda path: assert_ok(tenant.private.delete(f"/api/webhooks/{webhook['id']}"))
        send(app)

        assert len(receiver.received) == 1
        with part.database.read() as session:
            assert session.scalars(select(WebhookDelivery)).all() == []


class TestSwitchingOff:
    @pytest.fixture
    def failing(self, part: Runtime, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Make every attempt fail. Returns the URLs that were tried."""
        tried: list[str] = []

        def post(url: str, headers: Any, body: bytes) -> int:
            tried.append(url)
            raise NotSent("Nobody is there.")

        monkeypatch.setattr(part.deliverer, "_post", post)
        return tried

    def pass_time(self, app: Flask, tenant: Tenant, webhook: dict[str, Any], clock: time_machine.Traveller) -> None:
        """Retry waiting deliveries until none is left."""
        while waiting := [each for each in deliveries(tenant, webhook) if each["status"] == "waiting"]:
            clock.move_to(max(datetime.now(UTC), min(map(again_at, waiting))))
            send(app)

    def test_webhook_is_turned_off_after_three_days_of_failures_and_its_owner_is_notified(
        self,
        app: Flask,
        part: Runtime,
        tenant: Tenant,
        server: MailServer,
        clock: time_machine.Traveller,
        failing: list[str],
    ) -> None:
        webhook, _ = add_webhook(tenant, "https://user-service.example/hook?token=t0ken")
        other, _ = add_webhook(tenant, "https://other.example/", "run.finished")
        for day in range(3):
            clock.move_to(NOON + timedelta(days=day))
            tell(tenant)
            self.pass_time(app, tenant, webhook, clock)
        assert show(tenant, webhook)["active"]
        assert show(tenant, webhook)["failing_since"].startswith("2031-05-14T12:00:00")

        clock.move_to(NOON + OFF_AFTER)
        tell(tenant)
        self.pass_time(app, tenant, webhook, clock)
        tries = len(failing)
        tell(tenant)
        send(app)
        part.email_sender.send_due()

        assert not show(tenant, webhook)["active"]
        assert show(tenant, other)["active"]
        assert len(failing) == tries
        (mail,) = server.emails
        assert (mail.to, mail.message["Subject"]) == (
            [tenant.email],
            "Your webhook on user-service.example was turned off",
        )
        assert f"/api/webhooks/{webhook['id']}" in mail.text
        assert "t0ken" not in mail.text
        entry = assert_ok(tenant.private.get("/api/audit-log?kind=webhook"))["entries"][0]
        assert entry["actor"]["kind"] == "system"
        assert entry["changes"] == [{"field": "active", "before": True, "after": False}]

    def test_single_delivery_that_failed_long_ago_does_not_turn_a_webhook_off(
        self, app: Flask, tenant: Tenant, clock: time_machine.Traveller, failing: list[str]
    ) -> None:
        webhook, _ = add_webhook(tenant, "https://weekly.example/")
        tell(tenant)
        self.pass_time(app, tenant, webhook, clock)
        clock.move_to(NOON + timedelta(days=7))
        tell(tenant)
        send(app)

        assert show(tenant, webhook)["active"]

    def test_successful_delivery_resets_the_failure_period(
        self, app: Flask, part: Runtime, tenant: Tenant, clock: time_machine.Traveller, failing: list[str]
    ) -> None:
        webhook, _ = add_webhook(tenant, "https://shaky.example/")
        tell(tenant)
        self.pass_time(app, tenant, webhook, clock)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(part.deliverer, "_post", lambda *_: 200)
            tell(tenant)
            send(app)
        assert show(tenant, webhook)["failing_since"] is None
        clock.move_to(NOON + OFF_AFTER)
        tell(tenant)
        self.pass_time(app, tenant, webhook, clock)

        assert show(tenant, webhook)["active"]

    def test_turning_a_webhook_off_drops_waiting_deliveries_and_records_no_new_ones(
        self, app: Flask, tenant: Tenant, failing: list[str]
    ) -> None:
        webhook, _ = add_webhook(tenant, "https://example.com/")
        path = f"/api/webhooks/{webhook['id']}"
        tell(tenant)
        assert_ok(tenant.private.put(path, json={"active": False}))
        tell(tenant)
        send(app)
        assert_ok(tenant.private.put(path, json={"active": True}))
        send(app)

        assert failing == []
        (delivery,) = deliveries(tenant, webhook)
        assert (delivery["status"], delivery["error"]) == ("failed", "The webhook was turned off.")


class TestDeliveries:
    def test_redelivery_has_the_same_id_and_body(self, app: Flask, tenant: Tenant, receiver: Receiver) -> None:
        webhook, secret = add_webhook(tenant, receiver.base_url)
        tell(tenant)
        send(app)
        (delivery,) = deliveries(tenant, webhook)
        path = f"/api/webhooks/{webhook['id']}/deliveries/{delivery['id']}/redeliver"
        answer = assert_ok(tenant.private.post(path))
        assert (answer["success"], answer["delivery"]["status"]) == (True, "waiting")
        send(app)

        assert receiver.ids == [delivery["id"]] * 2
        assert receiver.received[0].body == receiver.received[1].body
        Verifier(secret).verify(receiver.received[1].body, receiver.received[1].headers)
        assert [each["status"] for each in deliveries(tenant, webhook)] == ["delivered"]

    def test_failed_delivery_can_be_redelivered_to_a_disabled_webhook(
        self, app: Flask, tenant: Tenant, receiver: Receiver
    ) -> None:
        webhook, _ = add_webhook(tenant, receiver.base_url)
        tell(tenant)
        assert_ok(tenant.private.put(f"/api/webhooks/{webhook['id']}", json={"active": False}))
        (delivery,) = deliveries(tenant, webhook)
        assert_ok(tenant.private.post(f"/api/webhooks/{webhook['id']}/deliveries/{delivery['id']}/redeliver"))
        send(app)

        assert receiver.ids == [delivery["id"]]
        assert deliveries(tenant, webhook)[0]["status"] == "delivered"

    def test_delivery_of_another_webhook_returns_404(self, tenant: Tenant) -> None:
        (first, _), (second, _) = (add_webhook(tenant, f"https://example.com/{name}") for name in "ab")
        tell(tenant)
        (delivery,) = deliveries(tenant, first)
        for name in (delivery["id"], "msg_" + "0" * 24, "%00", "msg_"):
            path = f"/api/webhooks/{second['id']}/deliveries/{name}/redeliver"
            assert_error(tenant.private.post(path), 404, "delivery_not_found")

    def test_newest_finished_and_all_waiting_deliveries_are_kept(
        self, app: Flask, tenant: Tenant, receiver: Receiver
    ) -> None:
        webhook, _ = add_webhook(tenant, receiver.base_url)
        for _ in range(MAX_FINISHED + 3):
            tell(tenant)
        assert len(deliveries(tenant, webhook)) == MAX_FINISHED + 3
        send(app)

        kept = [each["id"] for each in deliveries(tenant, webhook)]
        assert len(receiver.received) == MAX_FINISHED + 3
        assert kept == receiver.ids[::-1][:MAX_FINISHED]

    def test_waiting_deliveries_per_webhook_are_limited(
        self, app: Flask, tenant: Tenant, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(queue, "MAX_WAITING", 3)
        webhook, _ = add_webhook(tenant, receiver.base_url)
        for _ in range(MAX_FINISHED + 5):
            tell(tenant)

        waiting, failed = [], []
        for each in deliveries(tenant, webhook):
            (waiting if each["status"] == "waiting" else failed).append(each)
        assert (len(waiting), len(failed)) == (3, MAX_FINISHED - 3)
        assert {each["error"] for each in failed} == {"Too many newer deliveries were waiting."}
        send(app)
        assert sorted(receiver.ids) == sorted(each["id"] for each in waiting)
