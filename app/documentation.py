"""The product's own documentation: its location, the order of its pages, and redirects of moved pages and sections."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_PACKAGED = Path(__file__).with_name("_documentation")
"""Folder into which setup.py copies the documentation when it builds a wheel."""

FOLDER = _PACKAGED if _PACKAGED.is_dir() else Path(__file__).resolve().parent.parent
"""Folder that contains README.md and docs/; in a checkout, the project's root folder."""

REFERENCE = "reference"
"""Name of the API reference, which is generated from the OpenAPI document and has subpages."""

README = "readme"
"""Name of the page that shows the README."""

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Using the service": (
        "start", "content", "sources", "documents", "sync", "import", "search", "query-language", "tuning", "ask",
        "search-box", "site-builders", "analytics", "members", "webhooks", "api", REFERENCE, "clients", "gateway",
        "collections", "agents", "migrating", "limits", "errors", "changelog",
    ),
    "Self-hosting": (
        README, "settings", "operations", "scaling", "billing", "operators", "mail", "login", "security", "threats",
        "deployment", "upgrading", "engines", "architecture", "decisions", "contributing", "design", "benchmarks",
        "glossary",
    ),
}  # fmt: skip
"""Maps the title of each group to the names of its pages below ``/docs``, in reading order."""

SYNONYMS: tuple[tuple[str, ...], ...] = (
    ("2fa", "mfa", "totp", "two-factor authentication", "one-time codes"),
    ("admin", "administrator", "operator"),
    ("alerts", "monitoring", "metrics"),
    ("api key", "api token", "access token"),
    ("autocomplete", "typeahead", "suggestions", "search as you type"),
    ("batch", "bulk"),
    ("bot", "spider", "crawler"),
    ("changelog", "release notes", "what's new"),
    ("colleague", "teammate", "team member", "member"),
    ("connector", "integration", "sync"),
    ("delete", "remove", "erase"),
    ("demo", "quickstart", "getting started", "tutorial"),
    ("failover", "high availability", "several machines"),
    ("folder", "path"),
    ("gdpr", "privacy", "data protection"),
    ("health check", "healthz", "readyz", "liveness"),
    ("i18n", "localization", "translation", "languages"),
    ("js", "javascript"),
    ("k8s", "kubernetes"),
    ("log in", "login", "sign in"),
    ("logging", "logs"),
    ("postgres", "postgresql"),
    ("promote", "pin", "feature", "boost"),
    ("question", "answer"),
    ("register", "sign up", "create an account"),
    ("reset password", "forgot password", "forgotten password", "lost password"),
    ("search bar", "search box", "search widget"),
    ("spa", "single-page application", "single page app"),
    ("sso", "saml", "oidc", "single sign-on", "openid connect"),
    ("staging", "password-protected site", "staging site"),
    ("switch", "migrate", "move"),
    ("throttling", "rate limit", "too many requests"),
)
"""Groups of words that mean the same in the documentation: words that people search for, and words that the
documentation uses.
"""

RANKS: Mapping[str, int] = {
    "/docs/billing": -1,
    "/docs/reference*": -3,
    "/docs/architecture": -4,
    "/docs/benchmarks": -4,
    "/docs/changelog": -4,
    "/docs/contributing": -4,
    "/docs/decisions": -4,
    "/docs/design": -4,
    "/docs/glossary": -4,
    "/docs/readme": -4,
    "/docs/scaling": -1,
    "/docs/threats": -1,
}
"""Maps patterns of paths to ranks: guides come first, then the API reference, then pages for readers of the code."""

MOVED_PAGES: Mapping[str, str] = {"feeding": "content", "widget": "search-box"}
"""Maps former names of pages below ``/docs`` to current names. Browsers keep a link's anchor when redirected."""

MOVED_SECTIONS: Mapping[str, Mapping[str, str]] = {
    "architecture": {"why-not": "decisions", "a-mail": "architecture#an-email"},
    "tuning": {"explain-a-hits-position": "tuning#why-a-result-is-first"},
    "contributing": {"add-a-reason-for-leaving-a-page-out": "contributing#add-a-reason-for-skipping-a-page"},
    "api": {
        "allowed-origins": "api#restrict-a-key-to-your-domain",
        "limits": "limits",
        "plans": "limits#plans",
        "request-buckets": "limits#request-buckets",
        "refused-searches": "limits#rejected-searches",
        "indexing-operations": "limits#indexing-operations",
        "errors": "errors",
        "documents": "documents",
        "body-formats": "documents#body-formats",
        "list-documents": "documents#list-documents",
        "change-fields": "documents#change-fields",
        "remove-documents": "documents#remove-documents",
        "sync": "sync#the-sync-api",
        "suggestions": "search#suggestions",
        "clicks": "analytics#reporting-clicks",
        "analytics": "analytics#statistics",
        "one-query": "analytics#statistics-of-one-query",
        "inbox": "analytics#the-inbox-by-api",
    },
    "content": {
        "documents": "documents#fields",
        "websites": "content#a-website",
        "removing-documents": "documents#remove-documents",
        "importing-a-file": "import",
        "a-file-that-is-one-page": "import#a-file-that-is-one-page",
        "with-the-command": "import#with-the-command",
        "sync-from-a-cms": "sync",
        "python": "sync#python",
        "php": "sync#php",
        "javascript": "sync#javascript",
        "cron": "sync#cron",
        "github-actions": "sync#github-actions",
        "bulk-indexing": "documents#bulk-indexing",
    },
    "sources": {
        "in-step-at-once": "sources#update-immediately",
        "hooks": "sources#deploy-hooks",
        "looking-up-an-address": "sources#look-up-a-url",
        "manners": "sources#politeness",
        "pages-that-scripts-draw": "sources#pages-that-need-javascript",
    },
    "operations": {
        "settings": "settings",
        "mail": "mail",
        "several-machines": "scaling#several-machines",
        "what-redis-may-lose": "scaling#what-redis-may-lose",
        "moving-to-another-engine": "scaling#moving-to-another-engine",
        "operator-api": "operators#operator-api",
        "usage-of-a-month": "operators#usage-of-a-month",
    },
    "analytics": {"what-is-kept-of-visitors": "analytics#privacy-the-data-stored-about-visitors"},
    "security": {
        "threats": "threats",
        "other-accounts": "threats#other-accounts",
        "logins-and-members": "threats#logins-and-members",
        "keys": "threats#keys",
        "browsers": "threats#browsers",
        "the-crawler": "threats#the-crawler",
        "bodies-and-files": "threats#bodies-and-files",
        "agents": "threats#agents",
        "http-and-proxies": "threats#http-and-proxies",
        "servers-behind-the-service": "threats#servers-behind-the-service",
        "what-is-stored": "threats#what-is-stored",
        "what-is-kept-of-visitors": "security#what-is-stored-about-visitors",
        "what-is-not-held": "security#known-limits",
    },
    "limits": {
        "requests-at-once": "limits#concurrent-requests",
        "processor-time": "limits#cpu-time",
        "refused-searches": "limits#rejected-searches",
    },
    "search": {
        "what-was-found": "search#match-quality",
        "one-hit-of-each-value": "search#group-results",
        "query-language": "query-language",
        "part-numbers-names-in-code-and-hyphens": "query-language#part-numbers-names-in-code-and-hyphens",
        "languages": "query-language#languages",
        "relevance": "query-language#relevance",
        "tuning-results": "tuning#settings",
        "synonyms": "tuning#synonyms",
        "previewing-settings": "tuning#previewing-settings",
        "pinning-and-hiding-results": "tuning#pinning-and-hiding-results",
        "rules": "tuning#rules",
        "ranks": "tuning#ranks",
        "preferred-versions": "tuning#preferred-versions",
        "explain-a-hits-position": "tuning#why-a-result-is-first",
        "why-a-hit-stands-there": "tuning#why-a-result-is-first",
        "learning-from-clicks": "tuning#learning-from-clicks",
        "meaning": "tuning#meaning",
    },
    "members": {"one-time-codes": "members#two-factor-authentication"},
}
"""Maps a page to its moved sections: each former anchor to the section's current location below ``/docs``."""


def documentation_files() -> dict[str, Path]:
    """Map the names of pages below ``/docs`` to their Markdown files, in reading order. Missing files are omitted."""
    names = [name for group in GROUPS.values() for name in group if name != REFERENCE]
    files = {name: FOLDER / ("README.md" if name == README else f"docs/{name}.md") for name in names}
    return {name: file for name, file in files.items() if file.exists()}


def documentation_image(name: str) -> Path | None:
    """Return the path of an image that a page shows, or ``None`` if it does not exist."""
    images = {file.name: file for file in (FOLDER / "docs" / "images").glob("*.png")}
    return images.get(name)


def anchor_of(title: str) -> str:
    """Return the anchor of a heading: ``#search-engines`` for "Search engines"."""
    return re.sub(r"[^a-z0-9 -]", "", title.replace("`", "").lower()).strip().replace(" ", "-")
