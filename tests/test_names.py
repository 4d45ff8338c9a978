"""Every module has a test module of its name at its place, or stands in a list beside the tests that cover it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).parent.parent
PLACES = {"app": "tests", "backends": "tests/backends", "schemas": "tests/api"}
"""Where the tests of each package are. Those of a noun's schemas are the HTTP tests of the noun."""

COVERED_BY = {
    "app/api/views.py": "tests/api/test_sites.py",
    "app/backoff.py": "tests/test_jobs.py",
    "app/clock.py": "tests/service/test_clock.py",
    "app/commands/certificates.py": "tests/service/test_certificates.py",
    "app/commands/cli.py": "tests/web/test_quota.py",
    "app/commands/crawl.py": "tests/service/test_crawling.py",
    "app/commands/crawl_parts.py": "tests/commands/test_demo_data.py",
    "app/commands/demo_file.py": "tests/commands/test_demo_data.py",
    "app/commands/search.py": "tests/service/test_moves.py",
    "app/commands/setup.py": "tests/web/test_openapi.py",
    "app/counters/base.py": "tests/counters/test_windows.py",
    "app/counters/memory.py": "tests/counters/test_model.py",
    "app/counters/metering.py": "tests/counters/test_usage.py",
    "app/counters/redis/scripts.py": "tests/counters/test_model.py",
    "app/counters/sqlite/file.py": "tests/counters/sqlite/test_store.py",
    "app/counters/sqlite/housekeeper.py": "tests/counters/sqlite/test_store.py",
    "app/counters/sqlite/steps.py": "tests/counters/test_model.py",
    "app/documentation.py": "tests/test_docs.py",
    "app/errors.py": "tests/web/test_error_handlers.py",
    "app/gateway/hits.py": "tests/gateway/test_views.py",
    "app/gateway/queries.py": "tests/gateway/test_views.py",
    "app/memory.py": "tests/service/test_memory.py",
    "app/models/accounts.py": "tests/storage/test_migrate.py",
    "app/models/audit_log.py": "tests/storage/test_migrate.py",
    "app/models/base.py": "tests/storage/test_migrate.py",
    "app/models/documents.py": "tests/storage/test_migrate.py",
    "app/models/events.py": "tests/storage/test_migrate.py",
    "app/models/mail.py": "tests/storage/test_migrate.py",
    "app/models/keys.py": "tests/storage/test_migrate.py",
    "app/models/members.py": "tests/storage/test_migrate.py",
    "app/models/sites.py": "tests/storage/test_migrate.py",
    "app/models/sources.py": "tests/storage/test_migrate.py",
    "app/models/usage.py": "tests/storage/test_migrate.py",
    "app/models/inbox.py": "tests/storage/test_migrate.py",
    "schemas/remedies.py": "tests/pages/analytics/test_remedies.py",
    "app/pages/analytics/choice.py": "tests/pages/analytics/test_overview.py",
    "app/pages/sources/lines.py": "tests/pages/sources/test_views.py",
    "app/pages/dashboard.py": "tests/pages/test_every_page.py",
    "app/pages/docs/markdown.py": "tests/pages/docs/test_views.py",
    "app/pages/docs/code_blocks.py": "tests/pages/docs/test_views.py",
    "app/pages/docs/schema_tables.py": "tests/pages/docs/test_reference.py",
    "app/pages/errors.py": "tests/pages/test_negotiation.py",
    "app/pages/forms.py": "tests/pages/test_sites.py",
    "app/pages/home.py": "tests/pages/test_accounts.py",
    "app/pages/layout.py": "tests/pages/test_every_page.py",
    "app/pages/method_override.py": "tests/pages/test_negotiation.py",
    "app/pages/redirects.py": "tests/pages/test_accounts.py",
    "app/pages/search/facets.py": "tests/pages/search/test_preview.py",
    "app/pages/search/hits.py": "tests/pages/search/test_preview.py",
    "app/pages/settings_lines.py": "tests/pages/test_search_settings.py",
    "app/runtime.py": "tests/test_layers.py",
    "app/services/access/credentials.py": "tests/web/test_auth.py",
    "app/services/access/engine_keys.py": "tests/gateway/test_engine_keys.py",
    "app/services/access/key_last_used.py": "tests/storage/test_row_locks.py",
    "app/services/access/keys.py": "tests/api/test_keys.py",
    "app/services/access/roles.py": "tests/web/test_policy.py",
    "app/services/accounts/password_resets.py": "tests/pages/test_passwords.py",
    "app/services/access/sessions.py": "tests/api/test_accounts.py",
    "app/services/accounts/accounts.py": "tests/api/test_accounts.py",
    "app/services/analytics/bulk_sql.py": "tests/services/analytics/test_rollups.py",
    "app/services/analytics/event_ingestion.py": "tests/services/analytics/test_rollups.py",
    "app/services/audit_log/actors.py": "tests/api/test_audit_log.py",
    "app/services/audit_log/audited.py": "tests/api/test_audit_log.py",
    "app/services/audit_log/entries.py": "tests/api/test_audit_log.py",
    "app/services/audit_log/recording.py": "tests/api/test_audit_log.py",
    "app/services/dashboard.py": "tests/api/test_dashboard.py",
    "app/services/accounts/invitations.py": "tests/api/test_invitations.py",
    "app/services/accounts/members.py": "tests/api/test_members.py",
    "app/services/mail/queue.py": "tests/services/mail/test_delivery.py",
    "app/services/mail/unsubscribing.py": "tests/pages/test_digests.py",
    "app/services/outbox.py": "tests/api/test_profile.py",
    "app/services/search/preview_index.py": "tests/services/search/test_preview.py",
    "app/services/health/readiness.py": "tests/api/test_health.py",
    "app/services/search/search.py": "tests/api/test_search.py",
    "app/services/search_settings.py": "tests/api/test_search_settings.py",
    "app/services/sites.py": "tests/api/test_sites.py",
    "app/services/sources/checks.py": "tests/api/test_sources.py",
    "app/services/sources/removal.py": "tests/api/test_sources.py",
    "app/services/sources/sources.py": "tests/api/test_sources.py",
    "app/services/sources/sweeps.py": "tests/pages/sources/test_views.py",
    "app/services/crawling/control.py": "tests/services/crawling/test_execution.py",
    "app/services/crawling/crawl.py": "tests/services/crawling/test_execution.py",
    "app/services/crawling/first_page.py": "tests/services/crawling/test_preview.py",
    "app/services/crawling/frontier.py": "tests/services/crawling/test_execution.py",
    "app/services/crawling/posts.py": "tests/services/crawling/test_execution.py",
    "app/services/crawling/recorder.py": "tests/services/crawling/test_execution.py",
    "app/services/crawling/source_documents.py": "tests/services/crawling/test_execution.py",
    "app/services/crawling/titles.py": "tests/services/crawling/test_execution.py",
    "app/services/crawling/visitor.py": "tests/services/crawling/test_execution.py",
    "app/services/crawling/worker_process.py": "tests/service/test_crawling.py",
    "app/services/usage.py": "tests/api/test_usage.py",
    "app/storage/common_clock.py": "tests/service/test_common_clock.py",
    "app/storage/locks.py": "tests/service/test_start_and_stop.py",
    "app/tokens.py": "tests/api/test_keys.py",
    "app/web/actions.py": "tests/api/test_keys.py",
    "app/web/actors.py": "tests/api/test_audit_log.py",
    "app/web/client_ip.py": "tests/web/test_quota.py",
    "app/web/forms.py": "tests/api/test_sites.py",
    "app/web/gateway_errors.py": "tests/gateway/test_errors.py",
    "app/web/logins.py": "tests/api/test_accounts.py",
    "app/web/member_actions.py": "tests/api/test_members.py",
    "app/web/password_resets.py": "tests/pages/test_passwords.py",
    "app/web/parsing.py": "tests/web/test_error_handlers.py",
    "app/storage/watched_connection.py": "tests/service/test_servers_away.py",
    "app/storage/backup_file.py": "tests/commands/test_backup.py",
    "app/commands/diagnosis.py": "tests/commands/test_doctor.py",
    "app/web/source_actions.py": "tests/api/test_sources.py",
    "app/web/responses.py": "tests/web/test_openapi.py",
    "app/web/settings_actions.py": "tests/pages/search/test_tuning.py",
    "app/web/site_selection.py": "tests/web/test_auth.py",
    "app/web/url_converters.py": "tests/web/test_error_handlers.py",
    "app/web/worker.py": "tests/service/test_http.py",
    "backends/base.py": "tests/backends/contract/__init__.py",
    "backends/embedded/engine_errors.py": "tests/backends/embedded/index/test_disk.py",
    "backends/embedded/index/generations.py": "tests/backends/embedded/index/test_disk.py",
    "backends/embedded/index/locks.py": "tests/backends/embedded/index/test_disk.py",
    "backends/embedded/index/schema.py": "tests/backends/embedded/index/test_rebuild.py",
    "backends/embedded/index/snapshots.py": "tests/backends/embedded/index/test_store.py",
    "backends/embedded/maintenance/scheduler.py": "tests/backends/embedded/maintenance/test_merging.py",
    "backends/embedded/maintenance/vacuum.py": "tests/backends/embedded/maintenance/test_merging.py",
    "backends/embedded/query/ranking.py": "tests/ranking/test_numbers.py",
    "backends/embedded/query/term_queries.py": "tests/ranking/test_rows.py",
    "backends/embedded/results/highlight_terms.py": "tests/backends/embedded/results/test_highlighting.py",
    "backends/embedded/results/value_counts.py": "tests/backends/embedded/results/test_facets.py",
    "backends/embedded/search.py": "tests/ranking/test_rows.py",
    "backends/identity.py": "tests/backends/servers/test_server_url.py",
    "backends/meilisearch/keys.py": "tests/backends/meilisearch/promises.py",
    "backends/meilisearch/query.py": "tests/backends/meilisearch/test_backend.py",
    "backends/meilisearch/schema.py": "tests/backends/meilisearch/test_backend.py",
    "backends/meilisearch/transport.py": "tests/backends/meilisearch/test_backend.py",
    "backends/registry.py": "tests/backends/embedded/test_backend.py",
    "backends/servers/backend.py": "tests/backends/contract/__init__.py",
    "backends/servers/latin.py": "tests/backends/contract/letters.py",
    "backends/typesense/filters.py": "tests/backends/contract/filters.py",
    "backends/typesense/keys.py": "tests/backends/typesense/promises.py",
    "backends/typesense/native.py": "tests/backends/typesense/promises.py",
    "backends/typesense/query.py": "tests/backends/typesense/test_backend.py",
    "backends/typesense/refusals.py": "tests/backends/typesense/test_backend.py",
    "backends/typesense/reply.py": "tests/backends/typesense/test_backend.py",
    "backends/typesense/schema.py": "tests/backends/typesense/test_backend.py",
    "backends/typesense/synonyms.py": "tests/backends/typesense/promises.py",
    "schemas/base.py": "tests/web/test_error_handlers.py",
    "schemas/errors.py": "tests/web/test_openapi.py",
    "schemas/fields.py": "tests/web/test_error_handlers.py",
    "schemas/forms.py": "tests/api/test_sites.py",
    "schemas/gateway/searches.py": "tests/gateway/test_errors.py",
    "schemas/gateway/answers.py": "tests/gateway/test_recordings.py",
    "schemas/gateway/problems.py": "tests/gateway/test_errors.py",
    "schemas/gateway/query_string.py": "tests/gateway/test_errors.py",
    "schemas/validation/documents.py": "tests/api/test_documents.py",
    "schemas/validation/instants.py": "tests/api/test_documents.py",
    "schemas/validation/problems.py": "tests/web/test_error_handlers.py",
    "schemas/validation/sites.py": "tests/api/test_sites.py",
}
"""Modules without a test module of their name, and where they are tested. It may only shrink."""


def modules() -> Iterator[str]:
    """Paths of all modules that hold code of their own; tests/storage/test_migrate.py is about the migrations."""
    for package in PLACES:
        for file in sorted((PROJECT / package).rglob("*.py")):
            path = file.relative_to(PROJECT)
            if file.name != "__init__.py" and "migrations" not in path.parts:
                yield path.as_posix()


def own_test(module: str) -> str:
    """The path of the test module that has a module's name and place."""
    package, _, rest = module.partition("/")
    path = Path(PLACES[package], rest)
    return path.with_name(f"test_{path.name}").as_posix()


def test_a_module_has_a_test_of_its_name_or_is_listed_beside_its_tests() -> None:
    untested = {module: own_test(module) for module in modules() if not (PROJECT / own_test(module)).is_file()}

    assert {module: test for module, test in untested.items() if module not in COVERED_BY} == {}


def test_what_has_a_test_of_its_name_is_not_listed() -> None:
    assert [module for module in COVERED_BY if (PROJECT / own_test(module)).is_file()] == []


def test_the_list_names_modules_and_tests_that_are_there() -> None:
    assert [path for pair in COVERED_BY.items() for path in pair if not (PROJECT / path).is_file()] == []
