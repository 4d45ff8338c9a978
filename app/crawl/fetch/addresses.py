"""Addresses of pages: how they are written, and which of them belong to a site."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from urllib.parse import unquote_plus

from ada_url import URL, HostType
from publicsuffixlist import PublicSuffixList


def parse_url(url: str, base: str | None = None) -> URL:
    """An address as a browser understands it, without fragment and user.

    Args:
        url: Absolute, or relative to ``base``.
        base: An absolute address.

    Raises:
        ValueError: It is no http or https address.
    """
    parsed = URL(url, base) if base is not None else URL(url)
    if parsed.protocol not in {"http:", "https:"}:
        raise ValueError("no http or https address")
    parsed.hash = ""
    parsed.username = ""
    parsed.password = ""
    return parsed


def normalize_url(url: str, base: str | None = None) -> str:
    """An address as browsers serialise it, without fragment, user, and tracking parameters: a page's identity.

    Args:
        url: Absolute, or relative to ``base``.
        base: An absolute address.

    Raises:
        ValueError: It is no http or https address.
    """
    parsed = parse_url(url, base)
    query = parsed.search[1:]
    if query:
        kept = [parameter for parameter in query.split("&") if not _is_tracking(parameter)]
        if len(kept) < query.count("&") + 1:
            parsed.search = "&".join(kept)
    return parsed.href


def _is_tracking(parameter: str) -> bool:
    name = unquote_plus(parameter.partition("=")[0]).lower()
    return name.startswith("utm_") or name in {"gclid", "fbclid"}


@dataclass(frozen=True, slots=True)
class Scope:
    """The hosts of a site: its own, its registrable domain, and all below that; any port, http and https alike.

    A host without registrable domain (an IP address, a name without dots, a public suffix) stands alone.

    Attributes:
        host: Lower case, punycode; IPv6 addresses in brackets.
        domain: The registrable domain, if there is one.
    """

    host: str
    domain: str | None

    @classmethod
    def of(cls, url: str) -> Scope:
        """The scope of the site at an address.

        Raises:
            ValueError: It is no http or https address.
        """
        parsed = parse_url(url)
        host = _host(parsed)
        return cls(host, _registrable_domain(host) if parsed.host_type == HostType.DEFAULT else None)

    def contains(self, url: str) -> bool:
        """Tell whether an address lies on one of the hosts. What is no http or https address does not."""
        try:
            host = _host(parse_url(url))
        except ValueError:
            return False
        return host == self.host or (
            self.domain is not None and (host == self.domain or host.endswith(f".{self.domain}"))
        )


def host_of(url: str) -> str:
    """The host of an address: lower case, punycode, without port and final dot; IPv6 addresses in brackets.

    Raises:
        ValueError: It is no http or https address.
    """
    return _host(parse_url(url))


def header_origins(url: str) -> set[str]:
    """The origins that request headers for a source at ``url`` go to: its own, and the https one that takes its place.

    Raises:
        ValueError: It is no http or https address.
    """
    source = parse_url(url)
    origins = {source.origin}
    if source.protocol == "http:" and not source.port:
        origins.add(f"https://{source.hostname}")
    return origins


def _host(parsed: URL) -> str:
    return parsed.hostname.removesuffix(".")


def _registrable_domain(host: str) -> str | None:
    domain: str | None = _public_suffixes().privatesuffix(host)
    return domain


@cache
def _public_suffixes() -> PublicSuffixList:
    return PublicSuffixList()
