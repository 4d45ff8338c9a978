"""Checks of URLs of sources and webhooks, and of CSS selectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ada_url import URL
from turbohtml import parse

from app.crawl.fetch.addresses import Scope, host_of, is_public, literal_address, normalize_url, parse_url
from app.errors import field_error
from app.models import Site
from schemas.validation.documents import MAX_URL_LENGTH


def check_url(site: Site, url: str, *, private_addresses: bool, field: str = "url") -> str:
    """Normalize a URL, which must be on a site's hosts or their registrable domains.

    Args:
        private_addresses: Whether the host may be a private IP address.
        field: The request field to name in errors.

    Raises:
        ApiError: 400 for a URL on another host, in a private network, or with a user name.
    """
    try:
        scopes = [Scope.of(start) for start in (site.url, *site.domains)]
        normalized = normalize_url(url)
        host = host_of(url)
    except ValueError as error:
        raise field_error(field, "invalid_url", "must be an absolute http or https URL") from error
    if has_user(url):
        raise field_error(field, "invalid_url", "must not contain a user name or password; send them in headers")
    if not any(scope.contains(normalized) for scope in scopes):
        raise field_error(field, "other_host", f"must be {', or '.join(map(_describe, scopes))}")
    _reject_private(host, field, private_addresses=private_addresses)
    return normalized


def check_receiver(url: str, *, private_addresses: bool) -> str:
    """Serialize a webhook's URL as browsers do, without its fragment.

    Args:
        private_addresses: Whether its host may be a private IP address.

    Raises:
        ApiError: 400 for a URL that is not http or https, is in a private network, or contains a user name.
    """
    try:
        target = parse_url(url)
    except ValueError as error:
        raise field_error("url", "invalid_url", "must be an absolute http or https URL") from error
    if has_user(url):
        raise field_error("url", "invalid_url", "must not contain a user name or password")
    if len(target.href) > MAX_URL_LENGTH:
        raise field_error("url", "too_long", f"must have at most {MAX_URL_LENGTH} characters when encoded")
    _reject_private(target.hostname, "url", private_addresses=private_addresses)
    return target.href


def has_user(url: str) -> bool:
    """Whether a URL, parsed as browsers do, has a user name or a password."""
    try:
        parsed = URL(url)
    except ValueError:
        return False
    return bool(parsed.username or parsed.password)


def _reject_private(host: str, field: str, *, private_addresses: bool) -> None:
    address = literal_address(host)
    if address is not None and not private_addresses and not is_public(address):
        raise field_error(field, "private_address", "must not be an address in a private network")


def _describe(scope: Scope) -> str:
    return f"on {scope.domain} or one of its subdomains" if scope.domain else f"on the site’s host, {scope.host}"


def check_selectors(selectors: Mapping[str, str]) -> None:
    """Reject selectors that are not valid CSS.

    Raises:
        ApiError: 400.
    """
    for name, selector in selectors.items():
        _check_selector(selector, f"selectors.{name}")


def check_field_rules(rules: Sequence[Mapping[str, Any]]) -> None:
    """Reject rules for custom fields whose selectors are not valid CSS.

    Raises:
        ApiError: 400.
    """
    for position, rule in enumerate(rules):
        if "selector" in rule:
            _check_selector(rule["selector"], f"fields[{position}].selector")


def is_css(selector: str) -> bool:
    """Whether a selector is valid CSS for the parser that reads pages."""
    try:
        parse("", positions=False).select(selector)
    except ValueError:
        return False
    return True


def _check_selector(selector: str, field: str) -> None:
    if not is_css(selector):
        raise field_error(field, "invalid", "is not a valid CSS selector")
