"""Bounds of a source: an address of its site, and selectors that are CSS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from turbohtml import parse

from app.crawl.fetch.addresses import Scope, host_of, normalize_url
from app.crawl.fetch.ip_addresses import is_public, literal_address
from app.errors import field_error
from app.models import Site


def check_address(site: Site, url: str, *, private_addresses: bool, field: str = "url") -> str:
    """An address on a host of a site's addresses or below its registrable domain, normalized.

    Args:
        private_addresses: Whether it may be a literal address of a private network.
        field: What an error is about.

    Raises:
        ApiError: 400 for an address elsewhere, in a private network, or with a user.
    """
    try:
        scopes = [Scope.of(address) for address in (site.url, *site.domains)]
        normalized = normalize_url(url)
        host = host_of(url)
    except ValueError as error:
        raise field_error(field, "invalid_url", "must be an absolute http or https URL") from error
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise field_error(field, "invalid_url", "must not contain a user name or password; send them in headers")
    if not any(scope.contains(normalized) for scope in scopes):
        raise field_error(field, "other_host", f"must be {', or '.join(map(_where, scopes))}")
    address = literal_address(host)
    if address is not None and not private_addresses and not is_public(address):
        raise field_error(field, "private_address", "must not be the address of a private network")
    return normalized


def _where(scope: Scope) -> str:
    return f"on {scope.domain} or a host below it" if scope.domain else f"on the site’s host, {scope.host}"


def check_selectors(selectors: Mapping[str, str]) -> None:
    """Refuse selectors that the reader of pages cannot use.

    Raises:
        ApiError: 400.
    """
    for name, selector in selectors.items():
        _check_selector(selector, f"selectors.{name}")


def check_field_rules(rules: Sequence[Mapping[str, Any]]) -> None:
    """Refuse rules for further fields whose selectors the reader of pages cannot use.

    Raises:
        ApiError: 400.
    """
    for position, rule in enumerate(rules):
        if "selector" in rule:
            _check_selector(rule["selector"], f"fields[{position}].selector")


def is_css(selector: str) -> bool:
    """Tell whether the reader of pages can use a selector."""
    try:
        parse("", positions=False).select(selector)
    except ValueError:
        return False
    return True


def _check_selector(selector: str, field: str) -> None:
    if not is_css(selector):
        raise field_error(field, "invalid", "is not a CSS selector")
