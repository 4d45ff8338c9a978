"""The audit log: who changed what, when, and from where; never a secret."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
import time_machine
from click.testing import CliRunner
from flask import Flask
from flask.cli import FlaskGroup
from marshmallow import Schema
from sqlalchemy import select

from app.models import Account, AuditEntry, Base, Key, Member, Site, Source, Webhook
from app.services.audit_log import entries as audit_entries
from app.services.audit_log.actors import SYSTEM, current_actor
from app.services.audit_log.audited import AUDITED
from app.services.audit_log.recording import MAX_CHANGES_BYTES
from schemas.accounts import ProfileUpdateSchema
from schemas.keys import KeyUpdateSchema
from schemas.members import MemberUpdateSchema
from schemas.operator import OperatorAccountUpdateSchema
from schemas.sites import SiteUpdateSchema
from schemas.sources import SourceUpdateSchema
from schemas.webhooks import WebhookUpdateSchema
from tests.callers import PASSWORD, ApiClient, Tenant, add_member, member_id, page
from tests.pages.people import person_of
from tests.responses import assert_error, assert_ok

BO = "bo@example.com"
NOON = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)
Entry = dict[str, Any]


def read_log(tenant: Tenant, **query: object) -> list[Entry]:
    """Return the log, oldest entry first."""
    answer = assert_ok(tenant.private.get("/api/audit-log", query_string={"limit": 100, **query}))
    found: list[Entry] = answer["entries"]
    return found[::-1]


def last(tenant: Tenant) -> Entry:
    return read_log(tenant)[-1]


def run(app: Flask, *args: str) -> None:
    result = app.test_cli_runner().invoke(args=args)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(("schema", "model"), [
    (ProfileUpdateSchema, Member), (MemberUpdateSchema, Member), (SiteUpdateSchema, Site), (KeyUpdateSchema, Key),
    (SourceUpdateSchema, Source), (WebhookUpdateSchema, Webhook), (OperatorAccountUpdateSchema, Account),
])  # fmt: skip
def test_every_column_that_a_request_changes_is_logged(schema: type[Schema], model: type[Base]) -> None:
    changed = schema().fields.keys() & model.__table__.columns.keys()
    assert not changed - {*AUDITED[model].fields, *AUDITED[model].secrets}, "add it to AUDITED of audited.py"


class TestWhat:
    """Entries for creating, changing, and deleting each kind of object."""

    def test_new_accounts_log_contains_its_member_site_and_keys(self, tenant: Tenant) -> None:
        shown = [(entry["action"], entry["object"]["kind"], entry["object"]["name"]) for entry in read_log(tenant)]
        last4 = {kind: key["last4"] for kind, key in tenant.keys.items()}
        assert shown == [
            ("created", "member", tenant.email),
            ("created", "site", "Pages"),
            ("created", "key", f"public (svc_pub_…{last4['public']})"),
            ("created", "key", f"search (svc_srch_…{last4['search']})"),
            ("created", "key", f"private (svc_prv_…{last4['private']})"),
        ]

    def test_entry_contains_actor_object_and_changes(self, tenant: Tenant) -> None:
        with time_machine.travel(NOON, tick=False):
            assert_ok(
                tenant.private.put(
                    f"/sites/{tenant.site_id}",
                    json={"name": "Renamed", "active": False},
                    environ_overrides={"REMOTE_ADDR": "192.0.2.7"},
                )
            )
        entry = last(tenant)
        key = tenant.keys["private"]
        assert entry == {
            "id": entry["id"],
            "created_at": "2031-05-14T12:00:00.000Z",
            "actor": {
                "kind": "key",
                "id": key["id"],
                "name": f"private (svc_prv_…{key['last4']})",
                "address": "192.0.2.7",
            },
            "action": "changed",
            "object": {"kind": "site", "id": str(tenant.site_id), "name": "Renamed", "site_id": tenant.site_id},
            "changes": [
                {"field": "name", "before": "Pages", "after": "Renamed"},
                {"field": "active", "before": True, "after": False},
            ],
        }

    def test_creation_entry_contains_initial_values(self, tenant: Tenant) -> None:
        (site,) = read_log(tenant, kind="site")
        assert site["changes"] == [
            {"field": "name", "before": None, "after": "Pages"},
            {"field": "url", "before": None, "after": "https://www.example.com/"},
        ]

    def test_changed_domains_are_logged_as_added_and_removed(self, tenant: Tenant) -> None:
        blog, shop = "https://blog.example.org/", "https://shop.example.net/"
        path = f"/sites/{tenant.site_id}"
        assert_ok(tenant.browser.put(path, json={"domains": [blog]}))
        assert_ok(tenant.browser.put(path, json={"domains": [shop]}))
        assert last(tenant)["changes"] == [{"field": "domains", "added": [shop], "removed": [blog]}]

    def test_updates_without_changes_are_not_logged(self, tenant: Tenant) -> None:
        before = read_log(tenant)
        assert_ok(tenant.browser.put(f"/sites/{tenant.site_id}", json={"name": "Pages", "active": True}))
        assert_ok(tenant.browser.put("/profile", json={"name": "Somebody"}))
        assert read_log(tenant) == before

    def test_rejected_changes_are_not_logged(self, tenant: Tenant, stranger: Tenant) -> None:
        before = read_log(tenant)
        assert_error(stranger.browser.put(f"/sites/{tenant.site_id}", json={"name": "x"}), 404, "site_not_found")
        past = {"expires_at": "2001-01-01"}
        key = f"/api/sites/{tenant.site_id}/keys/{tenant.keys['search']['id']}"
        assert_error(tenant.browser.put(key, json=past), 400, "validation_failed")
        assert read_log(tenant) == before

    def test_key_expiry_toggle_rotation_and_deletion_are_logged(self, tenant: Tenant) -> None:
        key = tenant.keys["search"]
        path = f"/api/sites/{tenant.site_id}/keys/{key['id']}"
        before = len(read_log(tenant))
        assert_ok(tenant.browser.put(path, json={"expires_at": "2090-01-01"}))
        assert_ok(tenant.browser.post(f"/api/keys/{key['id']}/toggle"))
        assert_ok(tenant.browser.post(f"{path}/rotate"))
        assert_ok(tenant.browser.delete(path))

        entries = read_log(tenant)[before:]
        assert [(entry["action"], entry["changes"]) for entry in entries] == [
            ("changed", [{"field": "expires_at", "before": None, "after": "2090-01-01T00:00:00.000Z"}]),
            ("changed", [{"field": "active", "before": True, "after": False}]),
            ("changed", [{"field": "token"}]),
            ("deleted", []),
        ]
        assert {entry["object"]["id"] for entry in entries} == {key["id"]}

    def test_key_that_deletes_itself_is_named_as_actor_and_object(self, tenant: Tenant) -> None:
        key = tenant.keys["private"]
        assert_ok(tenant.private.delete(f"/api/sites/{tenant.site_id}/keys/{key['id']}"))
        (entry,) = [
            entry
            for entry in assert_ok(tenant.browser.get("/api/audit-log"))["entries"]
            if entry["action"] == "deleted"
        ]
        assert entry["actor"]["name"] == entry["object"]["name"] == f"private (svc_prv_…{key['last4']})"

    def test_search_settings_are_logged_with_added_and_removed_values(self, tenant: Tenant) -> None:
        path = f"/sites/{tenant.site_id}/search-settings"
        assert_ok(tenant.private.put(path, json={"synonyms": [["car", "auto"]], "language": "de"}))
        assert_ok(tenant.private.put(path, json={"synonyms": [["car", "auto"], ["boat", "ship"]]}))

        first, second = read_log(tenant, kind="search_settings")
        assert first["changes"] == [
            {"field": "language", "before": None, "after": "de"},
            {"field": "synonyms", "added": [["car", "auto"]], "removed": []},
        ]
        assert second["changes"] == [
            {"field": "language", "before": "de", "after": None},
            {"field": "synonyms", "added": [["boat", "ship"]], "removed": []},
        ]
        assert first["object"]["site_id"] == tenant.site_id

    def test_distinct_and_preferred_settings_are_logged(self, tenant: Tenant) -> None:
        preferred = {"field": "version", "value": "latest"}
        settings = {"distinct": "page", "preferred": preferred}
        assert_ok(tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json=settings))

        (entry,) = read_log(tenant, kind="search_settings")
        assert {change["field"]: change.get("after", change.get("added")) for change in entry["changes"]} == {
            "distinct": "page",
            "preferred": preferred,
        }

    def test_pinning_from_the_inbox_is_logged_as_a_settings_change(self, tenant: Tenant) -> None:
        tenant.index(page(1))
        person = person_of(tenant)
        person.go(f"/sites/{tenant.site_id}/inbox/pin?q=zeppelin&id=page-1")
        form = {"q": "zeppelin", "id": "page-1", "csrf_token": tenant.browser.csrf_token}
        assert person.call("POST", f"/sites/{tenant.site_id}/inbox/pin", data=form).status_code == 303

        (entry,) = read_log(tenant, kind="search_settings")
        assert entry["actor"]["name"] == tenant.email
        assert entry["changes"] == [
            {"field": "pinned", "added": [{"query": "zeppelin", "ids": ["page-1"]}], "removed": []}
        ]

    def test_long_lists_of_values_are_truncated(self, tenant: Tenant) -> None:
        words = [[f"word{number}", f"other{number}"] for number in range(150)]
        assert_ok(tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json={"synonyms": words}))
        (change,) = last(tenant)["changes"]
        assert change["added"][:100] == words[:100]
        assert change["added"][100:] == ["… and 50 more"]

    def test_changes_larger_than_the_limit_are_logged_without_values(self, tenant: Tenant) -> None:
        groups = [[f"{'long' * 20}{number}", f"other{number}"] for number in range(100)]
        settings = {"synonyms": groups, "distinct": "brand"}
        assert_ok(tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json=settings))

        changes = last(tenant)["changes"]
        assert {"field": "distinct", "before": None, "after": "brand"} in changes
        assert {"field": "synonyms"} in changes
        assert len(orjson.dumps(changes)) <= MAX_CHANGES_BYTES

    def test_source_changes_are_logged_without_header_values(self, tenant: Tenant) -> None:
        path = f"/api/sites/{tenant.site_id}/sources"
        headers = {"Authorization": "Basic c2VjcmV0OnNlY3JldA=="}
        made = assert_ok(
            tenant.private.post(path, json={"kind": "website", "url": "https://www.example.com/", "headers": headers}),
            201,
        )["source"]
        assert_ok(tenant.private.put(f"{path}/{made['id']}", json={"max_pages": 5, "headers": {}}))
        rules = [{"name": "label", "meta": "label"}]
        assert_ok(tenant.private.put(f"{path}/{made['id']}", json={"fields": rules}))
        assert_ok(tenant.private.delete(f"{path}/{made['id']}"))

        created, changed, ruled, deleted = read_log(tenant, kind="source")
        assert ruled["changes"] == [{"field": "fields", "added": rules, "removed": []}]
        assert {"field": "url", "before": None, "after": "https://www.example.com/"} in created["changes"]
        assert changed["changes"] == [{"field": "max_pages", "before": None, "after": 5}, {"field": "headers"}]
        assert (deleted["action"], deleted["object"]["name"]) == ("deleted", "https://www.example.com/")
        assert "c2VjcmV0" not in str(read_log(tenant))

    def test_member_and_invitation_changes_are_logged(self, tenant: Tenant) -> None:
        before = len(read_log(tenant))
        add_member(tenant, BO, "editor")
        bo = member_id(tenant, BO)
        assert_ok(tenant.browser.put(f"/api/members/{bo}", json={"role": "viewer"}))
        assert_ok(tenant.browser.delete(f"/api/members/{bo}"))

        entries = read_log(tenant)[before:]
        assert [(e["actor"]["name"], e["action"], e["object"]["kind"], e["object"]["name"]) for e in entries] == [
            (tenant.email, "created", "invitation", BO),
            (BO, "deleted", "invitation", BO),
            (BO, "created", "member", BO),
            (tenant.email, "changed", "member", BO),
            (tenant.email, "deleted", "member", BO),
        ]
        assert entries[3]["changes"] == [{"field": "role", "before": "editor", "after": "viewer"}]

    def test_profile_changes_are_logged_without_passwords(self, tenant: Tenant) -> None:
        change = {"email": "anna@example.com", "current_password": PASSWORD, "new_password": "another battery"}
        assert_ok(tenant.browser.put("/profile", json=change))

        entry = last(tenant)
        assert entry["changes"] == [
            {"field": "email", "before": tenant.email, "after": "anna@example.com"},
            {"field": "password"},
        ]
        assert entry["actor"]["name"] == tenant.email

    def test_only_successful_logins_are_logged(self, app: Flask, tenant: Tenant) -> None:
        count = len(read_log(tenant))
        assert_ok(ApiClient(app).post("/login", json={"email": tenant.email, "password": PASSWORD}))
        wrong = {"email": tenant.email, "password": "wrong password"}
        assert_error(ApiClient(app).post("/login", json=wrong), 401, "invalid_credentials")

        (entry,) = read_log(tenant)[count:]
        assert (entry["action"], entry["actor"]["name"], entry["actor"]["address"]) == (
            "logged_in", tenant.email, "127.0.0.1"
        )  # fmt: skip

    def test_document_changes_and_searches_are_not_logged(self, tenant: Tenant) -> None:
        before = read_log(tenant)
        tenant.index(page(1))
        tenant.find("page")
        tenant.app.extensions["jobs"].run_all()
        assert read_log(tenant) == before

    def test_log_contains_no_tokens_passwords_or_hashes(self, app: Flask, tenant: Tenant) -> None:
        path = f"/api/sites/{tenant.site_id}/keys/{tenant.keys['search']['id']}/rotate"
        fresh = assert_ok(tenant.private.post(path))["api_key"]
        link = assert_ok(tenant.private.post("/api/invitations", json={"email": BO}), 201)["url"]
        sources = f"/api/sites/{tenant.site_id}/sources"
        body = {"kind": "website", "url": "https://www.example.com/", "headers": {"X-Staging": "sesame opens"}}
        source = assert_ok(tenant.private.post(sources, json=body), 201)["source"]
        changed = {"headers": {"X-Staging": "sesame closes"}}
        hook = assert_ok(tenant.private.call("PATCH", f"{sources}/{source['id']}", json=changed))["source"]["hook_url"]
        renewed = assert_ok(tenant.private.post(f"{sources}/{source['id']}/hook"))["source"]["hook_url"]
        webhook = {"url": "https://hooks.example.com/", "events": ["run.failed"]}
        secret_of_webhook = assert_ok(tenant.private.post("/api/webhooks", json=webhook), 201)["secret"]
        codes = assert_ok(tenant.browser.post("/profile/totp", json={"current_password": PASSWORD}))["secret"]
        with app.extensions["runtime"].database.read() as session:
            stored = repr([vars(entry) for entry in session.scalars(select(AuditEntry))])
        secrets = [fresh, PASSWORD, "argon2", "sesame", secret_of_webhook, codes]
        secrets += [url.rpartition("/")[2] for url in (link, hook, renewed)]
        assert "hooks.example.com" in stored
        for secret in (*tenant.tokens.values(), *secrets):
            assert secret not in stored


class TestWho:
    """Actors: members, keys, the operator, and the service itself."""

    def test_members_entry_contains_email_and_truncated_ipv6_address(self, tenant: Tenant) -> None:
        bo = add_member(tenant, BO, "editor")
        assert_ok(
            bo.put(f"/sites/{tenant.site_id}", json={"name": "B"}, environ_overrides={"REMOTE_ADDR": "2001:db8::1"})
        )
        actor = {"kind": "member", "id": str(member_id(tenant, BO)), "name": BO, "address": "2001:db8::/64"}
        assert last(tenant)["actor"] == actor

    def test_command_line_changes_are_logged_with_operator_as_actor(self, app: Flask, tenant: Tenant) -> None:
        tenant.set_plan("enterprise", keys=50)
        entry = last(tenant)
        assert entry["actor"] == {"kind": "operator", "id": None, "name": "Command line", "address": None}
        assert entry["object"]["kind"] == "account"
        assert entry["changes"] == [
            {"field": "plan", "before": "pro", "after": "enterprise"},
            {"field": "limit_overrides", "before": {}, "after": {"keys": 50}},
        ]

        run(app, "account", "reset-password", tenant.email, "--password", "another good password")
        assert (last(tenant)["actor"]["kind"], last(tenant)["changes"]) == ("operator", [{"field": "password"}])

    def test_commands_run_through_flask_are_logged_with_operator_as_actor(self, app: Flask, tenant: Tenant) -> None:
        """With the `flask` command, Flask's own group runs the commands and only looks them up in the application's."""
        cli = FlaskGroup(create_app=lambda: app)
        result = CliRunner().invoke(cli, ["account", "set-plan", tenant.email, "free"])
        assert result.exit_code == 0, result.output
        assert last(tenant)["actor"]["kind"] == "operator"
        assert current_actor() is None

    def test_internal_changes_are_logged_with_system_as_actor(self, app: Flask, tenant: Tenant) -> None:
        with app.extensions["runtime"].database.write() as session:
            session.get_one(Site, tenant.site_id).active = False
        assert last(tenant)["actor"] == {"kind": "system", "id": None, "name": SYSTEM.name, "address": None}

    def test_entries_of_a_removed_member_remain(self, tenant: Tenant) -> None:
        bo = add_member(tenant, BO, "editor")
        assert_ok(bo.put(f"/sites/{tenant.site_id}", json={"name": "B"}))
        bos_id = member_id(tenant, BO)
        assert_ok(tenant.browser.delete(f"/api/members/{bos_id}"))
        assert [entry["action"] for entry in read_log(tenant, member_id=bos_id)] == ["changed"]


class TestReading:
    """Filters, pagination, and export."""

    def test_pagination_is_stable_while_the_log_grows(self, tenant: Tenant) -> None:
        whole = [entry["id"] for entry in read_log(tenant)][::-1]
        seen: list[int] = []
        before: dict[str, object] = {}
        while True:
            answer = assert_ok(tenant.private.get("/api/audit-log", query_string={"limit": 2, **before}))
            seen += [entry["id"] for entry in answer["entries"]]
            if answer["next_before"] is None:
                break
            before = {"before": answer["next_before"]}
            assert_ok(tenant.browser.put(f"/sites/{tenant.site_id}", json={"name": f"After {len(seen)}"}))
        assert seen == whole

    def test_log_is_filtered_by_time(self, tenant: Tenant) -> None:
        with time_machine.travel(NOON, tick=False) as clock:
            for name in "ABC":
                assert_ok(tenant.private.put(f"/sites/{tenant.site_id}", json={"name": name}))
                clock.shift(timedelta(hours=1))
        found = read_log(tenant, since="2031-05-14T13:00:00Z", until="2031-05-14T14:00:00Z")
        assert [entry["object"]["name"] for entry in found] == ["B"]
        assert read_log(tenant, since="2031-05-15") == []

    def test_log_is_filtered_by_kind_and_member(self, tenant: Tenant) -> None:
        bo = add_member(tenant, BO, "editor")
        assert_ok(bo.put(f"/sites/{tenant.site_id}", json={"name": "B"}))
        assert_ok(bo.post(f"/api/keys/{tenant.keys['search']['id']}/toggle"))
        found = read_log(tenant, kind="site", member_id=member_id(tenant, BO))
        assert [entry["object"]["name"] for entry in found] == ["B"]

    @pytest.mark.parametrize(
        "query", [{"kind": "document"}, {"since": "yesterday"}, {"member_id": 0}, {"before": "x"}, {"limit": 101}]
    )
    def test_invalid_log_filters_return_400_naming_the_field(self, tenant: Tenant, query: dict[str, object]) -> None:
        answer = assert_error(tenant.private.get("/api/audit-log", query_string=query), 400, "validation_failed")
        assert answer["details"][0]["field"] == next(iter(query))

    def test_log_excludes_entries_of_other_accounts(self, tenant: Tenant, stranger: Tenant) -> None:
        mine = {entry["id"] for entry in read_log(tenant)}
        assert mine.isdisjoint(entry["id"] for entry in read_log(stranger))
        owner = member_id(tenant, tenant.email)
        assert read_log(stranger, member_id=owner) == []

    def test_csv_export_matches_the_log_escapes_formulas_and_applies_filters(
        self, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(audit_entries, "STEP", 2)
        assert_ok(tenant.private.put(f"/sites/{tenant.site_id}", json={"name": "=cmd();=1"}))
        response = tenant.browser.get("/audit-log/export")

        assert response.mimetype == "text/csv"
        assert response.headers["Content-Disposition"] == 'attachment; filename="audit-log.csv"'
        rows = list(csv.DictReader(io.StringIO(response.get_data(as_text=True), newline="")))
        entries = read_log(tenant)[::-1]
        assert [row["time"] for row in rows] == [entry["created_at"] for entry in entries]
        assert rows[0]["name"] == "'=cmd();'=1"
        assert orjson.loads(rows[0]["changes"]) == entries[0]["changes"]
        narrowed = tenant.browser.get("/audit-log/export?kind=site").get_data(as_text=True)
        assert len(narrowed.splitlines()) == 3
        assert_error(tenant.browser.get("/audit-log/export?kind=x"), 400, "validation_failed")


class TestKeeping:
    """Retention of entries."""

    def test_entries_are_removed_after_400_days(self, app: Flask, tenant: Tenant) -> None:
        with time_machine.travel(NOON, tick=False) as clock:
            assert_ok(tenant.private.put(f"/sites/{tenant.site_id}", json={"name": "Renamed"}))
            clock.shift(timedelta(days=400))
            app.extensions["jobs"].run_all()
            assert "Renamed" in [entry["object"]["name"] for entry in read_log(tenant)]
            clock.shift(timedelta(seconds=1))
            app.extensions["jobs"].run_all()
            assert read_log(tenant) == []

    def test_only_the_newest_entries_of_each_account_are_kept(
        self, app: Flask, tenant: Tenant, stranger: Tenant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(audit_entries, "MAX_ENTRIES", 5)
        monkeypatch.setattr(audit_entries, "STEP", 2)
        for number in range(9):
            assert_ok(tenant.private.put(f"/sites/{tenant.site_id}", json={"name": f"Name {number}"}))
        before = len(read_log(stranger))

        app.extensions["jobs"].run_all()

        assert [entry["object"]["name"] for entry in read_log(tenant)] == [f"Name {number}" for number in range(4, 9)]
        assert len(read_log(stranger)) == before == 5

    def test_entries_of_a_deleted_site_stay_readable(self, tenant: Tenant) -> None:
        before = len(read_log(tenant))
        assert_ok(tenant.browser.delete(f"/sites/{tenant.site_id}"))
        entries = assert_ok(tenant.browser.get("/api/audit-log"))["entries"]
        assert len(entries) == before + 1
        assert (entries[0]["action"], entries[0]["object"]["name"]) == ("deleted", "Pages")
        assert entries[0]["object"]["site_id"] == tenant.site_id

    def test_deleting_the_account_removes_its_log(self, app: Flask, tenant: Tenant, stranger: Tenant) -> None:
        assert_ok(tenant.browser.delete("/profile", json={"password": PASSWORD}))
        with app.extensions["runtime"].database.read() as session:
            assert set(session.scalars(select(AuditEntry.account_id))) == {stranger.account_id}

    def test_log_is_read_only(self, tenant: Tenant) -> None:
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            assert_error(tenant.private.call(method, "/api/audit-log"), 405, "method_not_allowed")
