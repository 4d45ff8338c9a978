"""What holds for every operation: a new route needs its line here."""

from __future__ import annotations

from flask import Flask

from app.gateway.views import searched_text
from app.pages.search.preview import charges_search
from app.web.auth import ANY_KEY, ANY_KEY_OR_ENGINE_KEY, GATEWAY, INDEXING, MANAGING, SEARCHING
from app.web.policy import OPEN, OperationPolicy, policies, policy_of
from schemas.validation.keys import Scope

TABLE = {
    "accounts.login": OperationPolicy(opens_session=True, has_page=True),
    "accounts.register_account": OperationPolicy(opens_session=True, has_page=True),
    "accounts.logout": OperationPolicy(has_page=True),
    "pages.show_entrance": OperationPolicy(has_page=True),
    "pages.show_entrance.register": OperationPolicy(has_page=True),
    "pages.show_forgot": OperationPolicy(has_page=True),
    "pages.send_link": OperationPolicy(opens_session=True, has_page=True),
    "pages.show_reset": OperationPolicy(has_page=True),
    "pages.set_password": OperationPolicy(opens_session=True, has_page=True),
    "pages.show_unsubscribe": OperationPolicy(has_page=True),
    "pages.stop_digest": OperationPolicy(has_page=True),
    "pages.show_home": OperationPolicy(has_page=True),
    "pages.show_plans": OperationPolicy(has_page=True),
    "analytics.show_analytics": OperationPolicy(MANAGING, Scope.ANALYTICS, has_page=True),
    "pages.export_analytics": OperationPolicy(MANAGING, Scope.ANALYTICS),
    "inbox.show_inbox": OperationPolicy(MANAGING, Scope.ANALYTICS, has_page=True),
    "inbox.update_inbox": OperationPolicy(MANAGING, Scope.ANALYTICS, has_page=True),
    "pages.show_synonym_remedy": OperationPolicy(MANAGING, Scope.SITES, has_page=True),
    "pages.save_synonym": OperationPolicy(MANAGING, Scope.SITES, has_page=True),
    "pages.show_pin_remedy": OperationPolicy(MANAGING, Scope.SITES, has_page=True),
    "pages.save_pin": OperationPolicy(MANAGING, Scope.SITES, has_page=True),
    "dashboard.show_dashboard": OperationPolicy(MANAGING, Scope.SITES, whole_account=True, has_page=True),
    "imports.import_file": OperationPolicy(MANAGING, Scope.DOCUMENTS, has_page=True),
    "keys.create_key": OperationPolicy(MANAGING, Scope.KEYS, has_page=True),
    "keys.delete_key": OperationPolicy(MANAGING, Scope.KEYS, has_page=True),
    "keys.list_keys": OperationPolicy(MANAGING, Scope.KEYS, has_page=True),
    "keys.rotate_key": OperationPolicy(MANAGING, Scope.KEYS, has_page=True),
    "keys.show_edit_form": OperationPolicy(MANAGING, Scope.KEYS, has_page=True),
    "keys.show_key": OperationPolicy(MANAGING, Scope.KEYS, has_page=True),
    "keys.toggle_key": OperationPolicy(MANAGING, Scope.KEYS, has_page=True),
    "pages.tune_search": OperationPolicy(MANAGING, Scope.SITES, has_page=True),
    "pages.show_source_create_form": OperationPolicy(MANAGING, Scope.DOCUMENTS, has_page=True),
    "pages.show_source_edit_form": OperationPolicy(MANAGING, Scope.DOCUMENTS, has_page=True),
    "keys.dismiss_exposure": OperationPolicy(MANAGING, Scope.KEYS, has_page=True),
    "keys.update_key": OperationPolicy(MANAGING, Scope.KEYS, has_page=True),
    "profile.delete_account": OperationPolicy(MANAGING, Scope.ACCOUNT, whole_account=True, has_page=True),
    "profile.show_edit_form": OperationPolicy(MANAGING, Scope.ACCOUNT, whole_account=True, has_page=True),
    "profile.update_profile": OperationPolicy(MANAGING, Scope.ACCOUNT, whole_account=True, has_page=True),
    "search-settings.preview_search_settings": OperationPolicy(MANAGING, Scope.SITES, has_page=True),
    "search-settings.show_search_settings": OperationPolicy(MANAGING, Scope.SITES, has_page=True),
    "search-settings.update_search_settings": OperationPolicy(MANAGING, Scope.SITES, has_page=True),
    "sources.cancel_run": OperationPolicy(MANAGING, Scope.DOCUMENTS, has_page=True),
    "sources.create_source": OperationPolicy(MANAGING, Scope.DOCUMENTS, has_page=True),
    "sources.delete_source": OperationPolicy(MANAGING, Scope.DOCUMENTS, has_page=True),
    "sources.list_runs": OperationPolicy(MANAGING, Scope.DOCUMENTS, has_page=True),
    "sources.list_sources": OperationPolicy(MANAGING, Scope.DOCUMENTS, has_page=True),
    "sources.preview_page": OperationPolicy(MANAGING, Scope.DOCUMENTS, has_page=True),
    "sources.run_source": OperationPolicy(MANAGING, Scope.DOCUMENTS, has_page=True),
    "sources.show_run": OperationPolicy(MANAGING, Scope.DOCUMENTS, has_page=True),
    "sources.show_source": OperationPolicy(MANAGING, Scope.DOCUMENTS, has_page=True),
    "sources.update_source": OperationPolicy(MANAGING, Scope.DOCUMENTS, has_page=True),
    "sites.create_site": OperationPolicy(MANAGING, Scope.SITES, whole_account=True, has_page=True),
    "sites.delete_site": OperationPolicy(MANAGING, Scope.SITES, has_page=True),
    "sites.list_sites": OperationPolicy(MANAGING, Scope.SITES, has_page=True),
    "sites.show_create_form": OperationPolicy(MANAGING, Scope.SITES, whole_account=True, has_page=True),
    "sites.show_edit_form": OperationPolicy(MANAGING, Scope.SITES, has_page=True),
    "sites.show_site": OperationPolicy(MANAGING, Scope.SITES, has_page=True),
    "sites.update_site": OperationPolicy(MANAGING, Scope.SITES, has_page=True),
    "client-info.show_client_info": OperationPolicy(ANY_KEY),
    "usage.log_search": OperationPolicy(ANY_KEY),
    "clicks.report_click": OperationPolicy(ANY_KEY_OR_ENGINE_KEY),
    "analytics.show_query_analytics": OperationPolicy(MANAGING, Scope.ANALYTICS, has_page=True),
    "docs_image": OperationPolicy(uncounted=True),
    "health.show_health": OperationPolicy(uncounted=True),
    "health.show_readiness": OperationPolicy(uncounted=True),
    "metrics": OperationPolicy(uncounted=True),
    "documents.change_documents": OperationPolicy(MANAGING, Scope.DOCUMENTS),
    "documents.delete_documents": OperationPolicy(MANAGING, Scope.DOCUMENTS),
    "documents.list_documents": OperationPolicy(MANAGING, Scope.DOCUMENTS),
    "syncs.abandon_sync": OperationPolicy(MANAGING, Scope.DOCUMENTS),
    "syncs.begin_sync": OperationPolicy(MANAGING, Scope.DOCUMENTS),
    "syncs.finish_sync": OperationPolicy(MANAGING, Scope.DOCUMENTS),
    "syncs.show_sync": OperationPolicy(MANAGING, Scope.DOCUMENTS),
    "pages.show_documents": OperationPolicy(MANAGING, Scope.DOCUMENTS, has_page=True),
    "pages.remove_document": OperationPolicy(MANAGING, Scope.DOCUMENTS, has_page=True),
    "pages.export_documents": OperationPolicy(MANAGING, Scope.DOCUMENTS),
    "documents.delete_document": OperationPolicy(INDEXING, Scope.DOCUMENTS),
    "documents.index_documents": OperationPolicy(INDEXING, Scope.DOCUMENTS),
    "engine.multi_search": OperationPolicy(GATEWAY, searches=True, searched_text=searched_text),
    "engine.search_facet": OperationPolicy(GATEWAY, searches=True, searched_text=searched_text),
    "engine.search_index": OperationPolicy(GATEWAY, searches=True, searched_text=searched_text),
    "engine.search_index_by_query": OperationPolicy(GATEWAY, searches=True, searched_text=searched_text),
    "engine.show_health": OPEN,
    "engine.suggest": OperationPolicy(GATEWAY, searches=True),
    "engine.suggest_by_query": OperationPolicy(GATEWAY, searches=True),
    "suggestions.suggest": OperationPolicy(SEARCHING, Scope.SEARCH, searches=True),
    "keys.patch_key": OperationPolicy(MANAGING, Scope.KEYS),
    "sites.patch_site": OperationPolicy(MANAGING, Scope.SITES),
    "sources.patch_source": OperationPolicy(MANAGING, Scope.DOCUMENTS),
    "pages.show_import": OperationPolicy(MANAGING, Scope.DOCUMENTS, has_page=True),
    "openapi": OperationPolicy(reflects_nothing=True),
    "pages.show_docs": OperationPolicy(reflects_nothing=True, has_page=True),
    "pages.show_docs_page": OperationPolicy(reflects_nothing=True, has_page=True),
    "pages.show_docs_reference": OperationPolicy(reflects_nothing=True, has_page=True),
    "pages.show_search_preview": OperationPolicy(
        MANAGING, Scope.SEARCH, searches=True, charges_search=charges_search, has_page=True
    ),
    "search.search": OperationPolicy(SEARCHING, Scope.SEARCH, searches=True, charges_search=True),
    "search.search_by_body": OperationPolicy(SEARCHING, Scope.SEARCH, searches=True, charges_search=True),
    "static": OperationPolicy(uncounted=True, without_rate_headers=True, reflects_nothing=True),
    "usage.report_usage": OperationPolicy(ANY_KEY, reports_usage=True),
    "widget": OperationPolicy(uncounted=True, reflects_nothing=True),
    "widget_results": OperationPolicy(uncounted=True, reflects_nothing=True),
}


def test_the_table_of_policies(shared_app: Flask) -> None:
    with shared_app.app_context():
        assert {endpoint: policy_of(endpoint) for endpoint in shared_app.view_functions} == TABLE


NEEDS_NO_SCOPE = {
    "client-info.show_client_info",
    "clicks.report_click",
    "usage.log_search",
    "usage.report_usage",
}


def test_whatever_else_private_keys_may_do_needs_a_scope() -> None:
    open_to_keys = {endpoint for endpoint, policy in TABLE.items() if policy.access.private and policy.scope is None}

    assert open_to_keys == NEEDS_NO_SCOPE


def test_each_policy_belongs_to_a_route(shared_app: Flask) -> None:
    assert policies(shared_app).keys() <= shared_app.view_functions.keys()


def test_what_no_route_fits_is_open_to_anyone_and_counted(shared_app: Flask) -> None:
    with shared_app.app_context():
        assert policy_of(None) == policy_of("no such operation") == OPEN
