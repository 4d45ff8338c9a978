"""HTML pages: for browsers at the API's URLs, and at a few URLs without a JSON response."""

from __future__ import annotations

from dataclasses import replace

from flask import Flask
from flask_smorest import Api

from app.operations import digests as unsubscribing
from app.operations.oidc import CALLBACK
from app.pages import (
    accounts,
    audit_log,
    clicks,
    collections,
    dashboard,
    docs,
    docs_search,
    documents,
    email_links,
    imports,
    invitations,
    keys,
    layout,
    members,
    negotiation,
    plans,
    search_box,
    search_settings,
    sites,
    suggestions,
    usage,
    webhooks,
)
from app.pages.analytics import inbox, reports
from app.pages.negotiation import MethodOverride, View, add_pages
from app.pages.operator import accounts as operator_accounts
from app.pages.operator import charts as operator_charts
from app.pages.operator import health as operator_health
from app.pages.operator.access import OPERATING, enter_code
from app.pages.search.preview import charges_search, show_collection_preview, show_search_preview, tune_search
from app.pages.sources import views as sources
from app.services.access.rights import Role
from app.services.accounts import emails
from app.web.auth import ANYONE, MANAGING
from app.web.headers import API_DOCUMENT
from app.web.policy import OPERATOR_AREA, OperationPolicy, set_policy
from schemas.validation.keys import Scope

PAGES: dict[str, View] = {
    "accounts.register_account": accounts.enter,
    "accounts.login": accounts.enter,
    "accounts.logout": accounts.leave,
    "profile.show_edit_form": accounts.show_profile,
    "profile.update_profile": accounts.update_profile,
    "profile.delete_account": accounts.delete_account,
    "profile.show_codes": accounts.to_profile,
    "profile.begin_codes": accounts.begin_codes,
    "profile.confirm_codes": accounts.confirm_codes,
    "profile.remove_codes": accounts.remove_codes,
    "profile.list_sessions": accounts.to_profile,
    "profile.end_session": accounts.end_session,
    "profile.end_other_sessions": accounts.end_other_sessions,
    "members.list_members": members.list_members,
    "members.show_member": members.to_members,
    "members.update_member": members.update_member,
    "members.remove_member": members.remove_member,
    "invitations.list_invitations": members.to_members,
    "invitations.create_invitation": invitations.create_invitation,
    "invitations.renew_invitation": invitations.renew_invitation,
    "invitations.revoke_invitation": invitations.revoke_invitation,
    "invitations.show_invitation": invitations.show_invitation,
    "invitations.accept_invitation": invitations.accept_invitation,
    "audit-log.list_entries": audit_log.show_log,
    "webhooks.list_webhooks": webhooks.list_webhooks,
    "webhooks.create_webhook": webhooks.create_webhook,
    "webhooks.show_webhook": webhooks.show_webhook,
    "webhooks.update_webhook": webhooks.update_webhook,
    "webhooks.delete_webhook": webhooks.delete_webhook,
    "webhooks.list_deliveries": webhooks.show_webhook,
    "webhooks.redeliver": webhooks.redeliver,
    "dashboard.show_dashboard": dashboard.show_dashboard,
    "dashboard.show_month": usage.show_months,
    "analytics.show_analytics": reports.show_analytics,
    "analytics.show_query_analytics": reports.show_query,
    "inbox.show_inbox": inbox.show_inbox,
    "inbox.update_inbox": inbox.update_inbox,
    "sites.list_sites": sites.list_sites,
    "sites.create_site": sites.create_site,
    "sites.show_create_form": sites.show_create_form,
    "sites.show_site": sites.show_site,
    "sites.show_edit_form": sites.show_edit_form,
    "sites.update_site": sites.update_site,
    "sites.delete_site": sites.delete_site,
    "sites.restore_site": sites.restore_site,
    "search-settings.show_search_settings": search_settings.show_search_settings,
    "search-settings.update_search_settings": search_settings.update_search_settings,
    "search-settings.preview_search_settings": search_settings.preview_search_settings,
    "search-settings.forget_clicks": clicks.forget_clicks,
    "imports.import_file": imports.import_file,
    "collections.list_collections": collections.list_collections,
    "collections.create_collection": collections.create_collection,
    "collections.show_collection": collections.show_collection,
    "collections.update_collection": collections.update_collection,
    "collections.delete_collection": collections.delete_collection,
    "collections.list_keys": keys.for_collection(keys.list_keys),
    "collections.create_key": keys.for_collection(keys.create_key),
    "collections.show_key": keys.for_collection(keys.show_edit_form),
    "collections.update_key": keys.for_collection(keys.update_key),
    "collections.delete_key": keys.for_collection(keys.delete_key),
    "collections.rotate_key": keys.for_collection(keys.rotate_key),
    "keys.list_keys": keys.list_keys,
    "keys.create_key": keys.create_key,
    "keys.show_key": keys.show_edit_form,
    "keys.show_edit_form": keys.show_edit_form,
    "keys.update_key": keys.update_key,
    "keys.delete_key": keys.delete_key,
    "keys.rotate_key": keys.rotate_key,
    "keys.toggle_key": keys.toggle_key,
    "keys.dismiss_exposure": keys.dismiss_exposure,
    "sources.list_sources": sources.list_sources,
    "sources.create_source": sources.create_source,
    "sources.show_source": sources.show_source,
    "sources.update_source": sources.update_source,
    "sources.delete_source": sources.delete_source,
    "sources.run_source": sources.run_source,
    "sources.cancel_run": sources.cancel_run,
    "sources.renew_hook": sources.renew_hook,
    "sources.list_runs": sources.list_runs,
    "sources.show_run": sources.show_run,
    "sources.show_dead_links": sources.show_dead_links,
    "sources.preview_page": sources.preview_page,
    "sources.look_up_page": sources.look_up_page,
}
"""Maps API endpoints to the views that serve browsers at the same URLs."""

_PAGE = OperationPolicy(ANYONE, has_page=True)
_GUIDE = OperationPolicy(ANYONE, has_page=True, reflects_nothing=True)
_TEXT = OperationPolicy(ANYONE)
_DOCS_SEARCH = OperationPolicy(ANYONE, searches=True)
_ENTRANCE = OperationPolicy(ANYONE, opens_session=True, has_page=True)
_OWN = OperationPolicy(MANAGING, Scope.ACCOUNT, whole_account=True, role=Role.VIEWER)
_SCRIPT = OperationPolicy(ANYONE, uncounted=True, reflects_nothing=True)
_DOCUMENTS = OperationPolicy(MANAGING, Scope.DOCUMENTS, has_page=True)
_EXPORT = OperationPolicy(MANAGING, Scope.DOCUMENTS)
_OWNERS = OperationPolicy(MANAGING, Scope.ACCOUNT, whole_account=True, role=Role.OWNER)
_KEYS = OperationPolicy(MANAGING, Scope.KEYS)
_USAGE = OperationPolicy(MANAGING, Scope.SITES, whole_account=True)
_ANALYTICS = OperationPolicy(MANAGING, Scope.ANALYTICS)
_SETTINGS = OperationPolicy(MANAGING, Scope.SITES, has_page=True)
_BOX = OperationPolicy(MANAGING, Scope.KEYS, has_page=True)
_DOCUMENT_FORM = replace(_DOCUMENTS, role=Role.EDITOR)
_SETTINGS_FORM = replace(_SETTINGS, role=Role.EDITOR)
_COLLECTIONS = OperationPolicy(MANAGING, Scope.SITES, whole_account=True, has_page=True, role=Role.EDITOR)
_COLLECTION_KEYS = OperationPolicy(MANAGING, Scope.KEYS, whole_account=True)
_PREVIEW = OperationPolicy(MANAGING, Scope.SEARCH, has_page=True, searches=True, charges_search=charges_search)
_COLLECTION_PREVIEW = replace(_PREVIEW, whole_account=True)

_SITE = "/sites/<int(signed=True):site_id>"
_COLLECTION = "/collections/<int(signed=True):collection_id>"
_SETTINGS_SECTION = _SITE + "/search-settings/<string:section>"
_INBOX = _SITE + "/inbox"
_OPERATOR_ACCOUNT = OPERATOR_AREA + "/accounts/<int(signed=True):account_id>"
_SOURCES = _SITE + "/sources"

HTML_ONLY_PAGES: tuple[tuple[str, str, View, OperationPolicy], ...] = (
    ("/", "pages.show_home", dashboard.show_home, _PAGE),
    ("/plans", "pages.show_plans", plans.show_plans, _PAGE),
    ("/login", "pages.show_entrance", accounts.show_entrance, _PAGE),
    ("/register", "pages.show_entrance.register", accounts.show_entrance, _PAGE),
    ("/password/forgot", "pages.show_forgot", email_links.show_forgot, _PAGE),
    ("/password/reset", "pages.show_reset", email_links.show_reset, _PAGE),
    (emails.CHANGE_PATH, "pages.show_email_change", email_links.show_email_change, _PAGE),
    (emails.CONFIRMATION_PATH, "pages.show_confirmation", email_links.show_confirmation, _PAGE),
    ("/login/oidc", "pages.begin_login", accounts.begin_login, _PAGE),
    (CALLBACK, "pages.finish_login", accounts.finish_login, _PAGE),
    (unsubscribing.PATH, "pages.show_unsubscribe", email_links.show_unsubscribe, _PAGE),
    (_SITE + "/try", "pages.show_search_preview", show_search_preview, _PREVIEW),
    (_SITE + "/box", "pages.show_box", search_box.show_box, _BOX),
    ("/collections/create", "pages.show_collection_create_form", collections.show_create_form, _COLLECTIONS),
    (_COLLECTION + "/edit", "pages.show_collection_edit_form", collections.show_edit_form, _COLLECTIONS),
    (_COLLECTION + "/try", "pages.show_collection_preview", show_collection_preview, _COLLECTION_PREVIEW),
    (_SOURCES + "/create", "pages.show_source_create_form", sources.show_create_form, _DOCUMENT_FORM),
    (_SOURCES + "/<string:source_id>/edit", "pages.show_source_edit_form", sources.show_edit_form, _DOCUMENT_FORM),
    (_SOURCES + "/<string:source_id>/dead-links/export", "pages.export_dead_links", sources.export_dead_links, _EXPORT),
    (_SITE + "/import", "pages.show_import", imports.show_import, _DOCUMENT_FORM),
    (_SITE + "/documents", "pages.show_documents", documents.show_documents, _DOCUMENTS),
    (_SITE + "/documents/export", "pages.export_documents", documents.export_documents, _EXPORT),
    ("/audit-log/export", "pages.export_audit_log", audit_log.export_log, _OWNERS),
    ("/usage/export", "pages.export_months", usage.export_months, _USAGE),
    ("/analytics/export", "pages.export_analytics", reports.export_analytics, _ANALYTICS),
    (_SETTINGS_SECTION, "pages.show_settings_section", search_settings.show_settings_section, _SETTINGS_FORM),
    (_INBOX + "/synonym", "pages.show_synonym_remedy", inbox.show_synonym_remedy, _SETTINGS_FORM),
    (_INBOX + "/pin", "pages.show_pin_remedy", inbox.show_pin_remedy, _SETTINGS_FORM),
    ("/docs", "pages.show_docs", docs.show_docs, _GUIDE),
    ("/docs/<string:name>", "pages.show_docs_page", docs.show_docs_page, _GUIDE),
    ("/docs/<string:name>.md", "pages.show_docs_markdown", docs.show_docs_markdown, _TEXT),
    ("/llms.txt", "pages.show_llms_txt", docs.show_llms_txt, _TEXT),
    ("/docs/reference/<string:name>", "pages.show_docs_reference", docs.show_docs_reference, _GUIDE),
    (API_DOCUMENT, "openapi", docs.show_document, OperationPolicy(ANYONE, reflects_nothing=True)),
    ("/widget.js", "widget", search_box.show_widget, _SCRIPT),
    ("/widget-results.js", "widget_results", search_box.show_widget_results, _SCRIPT),
    ("/widget-texts.js", "widget_texts", search_box.show_widget_texts, _SCRIPT),
    ("/widget-related.js", "widget_related", search_box.show_widget_related, _SCRIPT),
    ("/widget-ask.js", "widget_ask", search_box.show_widget_ask, _SCRIPT),
    ("/docs/widget.js", "docs_widget", search_box.show_widget, _SCRIPT),
    ("/docs/widget-results.js", "docs_widget_results", search_box.show_widget_results, _SCRIPT),
    ("/docs/widget-texts.js", "docs_widget_texts", search_box.show_widget_texts, _SCRIPT),
    ("/docs/v1/client-info", "docs_client_info", docs_search.show_docs_client_info, _DOCS_SEARCH),
    ("/docs/engine/suggest", "docs_suggest", docs_search.suggest_docs, _DOCS_SEARCH),
    (OPERATOR_AREA, "pages.show_operator_accounts", operator_accounts.show_accounts, OPERATING),
    (OPERATOR_AREA + "/charts", "pages.show_operator_charts", operator_charts.show_charts, OPERATING),
    (OPERATOR_AREA + "/health", "pages.show_operator_health", operator_health.show_health, OPERATING),
    (_OPERATOR_ACCOUNT, "pages.show_operator_account", operator_accounts.show_account, OPERATING),
    ("/docs/images/<string:name>", "docs_image", docs.show_docs_image, OperationPolicy(ANYONE, uncounted=True)),
)
"""Pages at URLs without a JSON response: rule, endpoint, view, policy."""

HTML_ONLY_FORMS: tuple[tuple[str, str, str, View, OperationPolicy], ...] = (
    ("POST", "/docs/engine/indexes/documentation/search", "docs_search", docs_search.search_docs, _DOCS_SEARCH),
    ("POST", "/password/forgot", "pages.send_link", email_links.send_link, _ENTRANCE),
    ("POST", "/password/reset", "pages.set_password", email_links.set_password, _ENTRANCE),
    ("POST", emails.CHANGE_PATH, "pages.undo_email_change", email_links.undo_email_change, _ENTRANCE),
    ("POST", emails.CONFIRMATION_PATH, "pages.confirm_email", email_links.confirm_email, _ENTRANCE),
    ("POST", "/profile/confirmation", "pages.send_confirmation", email_links.send_again, _OWN),
    ("POST", "/profile/identity", "pages.connect_login", accounts.connect_login, _OWN),
    ("POST", "/login/account", "pages.choose_account", accounts.choose_account_of_login, _ENTRANCE),
    ("POST", unsubscribing.PATH, "pages.stop_digest", email_links.stop_digest, _PAGE),
    ("DELETE", _SITE + "/documents", "pages.remove_document", documents.remove_document, _DOCUMENTS),
    ("POST", _SITE + "/try", "pages.tune_search", tune_search, _SETTINGS),
    ("POST", _SITE + "/box", "pages.create_box_key", search_box.create_box_key, _KEYS),
    ("POST", _COLLECTION + "/box", "pages.create_collection_box_key", collections.create_box_key, _COLLECTION_KEYS),
    ("POST", "/audit-log/<int:entry_id>/restore", "pages.restore_settings", audit_log.restore_settings, _OWNERS),
    ("PATCH", _SETTINGS_SECTION, "pages.update_settings_section", search_settings.update_settings_section, _SETTINGS),
    ("POST", OPERATOR_AREA + "/code", "pages.enter_operator_code", enter_code, OPERATING),
    ("POST", OPERATOR_AREA + "/health/model", "pages.check_language_model", operator_health.check_model, OPERATING),
    ("POST", _OPERATOR_ACCOUNT + "/plan", "pages.change_account_plan", operator_accounts.change_plan, OPERATING),
    ("POST", _OPERATOR_ACCOUNT + "/suspend", "pages.suspend_account", operator_accounts.suspend_account, OPERATING),
    ("POST", _OPERATOR_ACCOUNT + "/resume", "pages.resume_account", operator_accounts.resume_account, OPERATING),
    ("POST", _INBOX + "/synonym", "pages.save_synonym", inbox.save_synonym, _SETTINGS),
    ("POST", _INBOX + "/pin", "pages.save_pin", inbox.save_pin, _SETTINGS),
    ("POST", _SITE + "/hidden-suggestions", "pages.hide_suggestion", suggestions.hide_suggestion, _SETTINGS),
    ("DELETE", _SITE + "/examples", "pages.remove_examples", reports.remove_example_searches, _SETTINGS),
    ("POST", _SITE + "/learned-clicks", "pages.switch_learning", clicks.switch_learning, _SETTINGS),
)
"""Forms sent to URLs without a JSON response: method, rule, endpoint, view, policy."""


def register(app: Flask, api: Api) -> None:
    """Register the pages. The API's views must be registered first."""
    layout.register(app)
    add_pages(app, PAGES)
    for rule, endpoint, view, policy in HTML_ONLY_PAGES:
        app.add_url_rule(rule, endpoint, view)
        set_policy(app, endpoint, policy)
    for method, rule, endpoint, view, policy in HTML_ONLY_FORMS:
        app.add_url_rule(rule, endpoint, view, methods=[method])
        set_policy(app, endpoint, policy)
    app.extensions["error_responders"].append(negotiation.render_error_page)
    app.wsgi_app = MethodOverride(app.wsgi_app, app.config["MAX_BODY_BYTES"])  # type: ignore[method-assign]
