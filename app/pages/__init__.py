"""Pages for people: HTML at the addresses of the API, and a few of their own."""

from __future__ import annotations

from flask import Flask
from flask_smorest import Api

from app.pages import (
    accounts,
    analytics,
    dashboard,
    docs,
    errors,
    home,
    keys,
    layout,
    search_preview,
    search_settings,
    sites,
    widget,
)
from app.pages.method_override import MethodOverride
from app.pages.negotiation import add_page, note_choice
from app.web.compression import API_DOCUMENT

PAGES = {
    "accounts.register_account": accounts.enter,
    "accounts.login": accounts.enter,
    "accounts.logout": accounts.leave,
    "profile.show_edit_form": accounts.show_profile,
    "profile.update_profile": accounts.update_profile,
    "profile.delete_account": accounts.delete_account,
    "dashboard.show_dashboard": dashboard.show_dashboard,
    "analytics.show_analytics": analytics.show_analytics,
    "sites.list_sites": sites.list_sites,
    "sites.create_site": sites.create_site,
    "sites.show_create_form": sites.show_create_form,
    "sites.show_site": sites.show_site,
    "sites.show_edit_form": sites.show_edit_form,
    "sites.update_site": sites.update_site,
    "sites.delete_site": sites.delete_site,
    "search-settings.show_search_settings": search_settings.show_search_settings,
    "search-settings.update_search_settings": search_settings.update_search_settings,
    "keys.list_keys": keys.list_keys,
    "keys.create_key": keys.create_key,
    "keys.show_key": keys.show_key,
    "keys.show_edit_form": keys.show_edit_form,
    "keys.update_key": keys.update_key,
    "keys.delete_key": keys.delete_key,
    "keys.rotate_key": keys.rotate_key,
    "keys.toggle_key": keys.toggle_key,
}
"""Endpoint of the API to the view that answers people there."""

OWN_PAGES = {
    "/": home.show_home,
    "/login": accounts.show_entrance,
    "/register": accounts.show_entrance,
    "/sites/<int(signed=True):site_id>/try": search_preview.show_trial,
    "/docs": docs.show_docs,
    "/docs/<string:name>": docs.show_docs_page,
}
"""Addresses that only pages have."""


def register(app: Flask, api: Api) -> None:
    """Register the pages beside the API's views, which must be there."""
    layout.register(app)
    for endpoint, page in PAGES.items():
        add_page(app, endpoint, page)
    for rule, view in OWN_PAGES.items():
        view.has_page = True  # type: ignore[attr-defined]
        app.add_url_rule(rule, f"pages.{view.__name__}{'.register' if rule == '/register' else ''}", view)
    app.add_url_rule(API_DOCUMENT, "openapi", home.show_document)
    app.add_url_rule("/widget.js", "widget", widget.show_widget)
    app.add_url_rule("/docs/images/<string:name>", "docs_image", docs.show_docs_image)
    app.after_request(note_choice)
    app.extensions["error_responders"].append(errors.answer_person)
    app.wsgi_app = MethodOverride(app.wsgi_app, app.config["MAX_BODY_BYTES"])  # type: ignore[method-assign]
