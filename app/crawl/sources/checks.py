"""Bounds of addresses that may be asked, of sources and of webhooks; selectors that are CSS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ada_url import URL
from turbohtml import parse

from app.crawl.fetch.addresses import Scope, host_of, normalize_url, parse_url
from app.crawl.fetch.ip_addresses import is_public, literal_address
from app.errors import field_error
from app.models import Site
from schemas.validation.documents import MAX_URL_LENGTH


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
    if has_user(url):
        raise field_error(field, "invalid_url", "must not contain a user name or password; send them in headers")
    if not any(scope.contains(normalized) for scope in scopes):
        raise field_error(field, "other_host", f"must be {', or '.join(map(_where, scopes))}")
    _refuse_private(host, field, private_addresses=private_addresses)
    return normalized


def check_receiver(url: str, *, private_addresses: bool) -> str:
    """The address of a webhook, as browsers serialise it, without fragment.

    Args:
        private_addresses: Whether it may be a literal address of a private network.

    Raises:
        ApiError: 400 for no http or https address, one in a private network, or with a user.
    """
    try:
        target = parse_url(url)
    except ValueError as error:
        raise field_error("url", "invalid_url", "must be an absolute http or https URL") from error
    if has_user(url):
        raise field_error("url", "invalid_url", "must not contain a user name or password")
    if len(target.href) > MAX_URL_LENGTH:
        raise field_error("url", "too_long", f"must have at most {MAX_URL_LENGTH} characters, encoded")
    _refuse_private(target.hostname, "url", private_addresses=private_addresses)
    return target.href


def has_user(url: str) -> bool:
    """Whether a URL has a user name or a password, as browsers read it."""
    try:
        parsed = URL(url)
    except ValueError:
        return False
    return bool(parsed.username or parsed.password)


def _refuse_private(host: str, field: str, *, private_addresses: bool) -> None:
    address = literal_address(host)
    if address is not None and not private_addresses and not is_public(address):
        raise field_error(field, "private_address", "must not be the address of a private network")


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
