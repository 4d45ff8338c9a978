"""Parsing and checking settings of optional features: email, embedders, providers, the operator API, and billing."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from email.headerregistry import Address
from urllib.parse import SplitResult, quote, unquote, urlsplit

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ADDRESS = re.compile(rf"(?P<local>{_ATOM}(?:\.{_ATOM})*)@(?P<domain>{_LABEL}(?:\.{_LABEL})*)")
_PORTS = {"smtp": 587, "smtps": 465}
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
"""Hosts of an OpenID Connect provider that may use http."""


@dataclass(frozen=True, slots=True)
class SmtpServer:
    """A mail server.

    Attributes:
        tls: Whether the connection begins with TLS; otherwise, STARTTLS is used if the server offers it.
        user: Empty if the server needs no login.
    """

    host: str
    port: int
    tls: bool
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine, where no attacker on a network can listen or impersonate it."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")


def parse_smtp_url(url: str) -> SmtpServer:
    """Parse ``smtp://user:password@host:port`` or ``smtps://…``; user and password are percent-encoded.

    Raises:
        ValueError: The URL is invalid. The message explains it, without the password.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if parts.scheme not in _PORTS or not host or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("must be smtp://user:password@host:port or smtps://…, with special characters percent-encoded")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if bool(user) != bool(password):
        raise ValueError("must have both a user and a password, or neither")
    if not (user + password).isascii():
        raise ValueError("must have an ASCII user and password, as SMTP requires")
    return SmtpServer(host, port or _PORTS[parts.scheme], parts.scheme == "smtps", user, password)


def parse_sender(text: str) -> Address:
    """Parse the sender of emails: ``search@example.com`` or ``Site Search <search@example.com>``.

    Raises:
        ValueError: ``text`` is not a single address.
    """
    name, bracket, rest = text.strip().partition("<")
    if not bracket:
        name, rest = "", f"{name}>"
    name = name.strip()
    match = _ADDRESS.fullmatch(rest.removesuffix(">")) if rest.endswith(">") else None
    if match is None or not name.isprintable() or "@" in name:
        raise ValueError("must be one ASCII address, such as Site Search <search@example.com>")
    if len(name) > 1 and name.startswith('"') and name.endswith('"'):
        name = name[1:-1]
    return Address(name, match["local"], match["domain"])


def email_problems(smtp_url: str, mail_from: str, public_url: str, operator_contact: str) -> Iterator[str]:
    """Yield a sentence for each problem of the email settings."""
    for name, value, parse in (("SMTP_URL", smtp_url, parse_smtp_url), ("MAIL_FROM", mail_from, parse_sender)):
        try:
            if value:
                parse(value)
        except ValueError as error:
            yield f"{name} {error}."
    if smtp_url and not mail_from:
        yield "SMTP_URL requires MAIL_FROM: emails need a sender."
    if smtp_url and not public_url:
        yield "SMTP_URL requires PUBLIC_URL: emails contain links to this service."
    if not operator_contact.isprintable():
        yield "OPERATOR_CONTACT must be one line."


def split_url(url: str) -> SplitResult:
    """Return the parts of a URL; all of them are empty if the URL is invalid."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def oidc_problems(
    *, issuer: str, client: tuple[str, str], public_url: str, allowed_domains: Set[str], name: str, password_login: bool
) -> Iterator[str]:
    """Yield a sentence for each problem of the settings for logging in with an OpenID Connect provider.

    Args:
        client: The client ID and the client secret.
    """
    parts = split_url(issuer)
    is_local = parts.scheme == "http" and parts.hostname in LOOPBACK_HOSTS
    is_safe = _is_web_url(issuer) and (parts.scheme == "https" or is_local)
    if issuer and not (is_safe and not parts.query and not parts.fragment):
        yield "OIDC_ISSUER must be an https URL without a password."
    if issuer and not all((*client, public_url)):
        yield "OIDC_ISSUER requires OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, and PUBLIC_URL."
    if not issuer and any((*client, allowed_domains, name)):
        yield "OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, OIDC_ALLOWED_DOMAINS, and OIDC_NAME require OIDC_ISSUER."
    if any("@" in domain or "." not in domain for domain in allowed_domains):
        yield "OIDC_ALLOWED_DOMAINS must be domains, such as example.com, separated by commas."
    if not password_login and not issuer:
        yield "PASSWORD_LOGIN=false requires OIDC_ISSUER; otherwise, no one could log in."


LOCAL_EMBEDDERS = ("minilm", "fastembed")
"""Values of EMBEDDER that run a model on this machine; other values are URLs of servers."""


def embedder_problems(embedder: str, model: str, key: str) -> Iterator[str]:
    """Yield a sentence for each problem of the embedder settings."""
    is_address = embedder not in ("", *LOCAL_EMBEDDERS)
    try:
        address = urlsplit(embedder)
        is_valid = address.scheme in ("http", "https") and bool(address.hostname) and not address.fragment
        is_valid = is_valid and address.port != 0  # A port out of range raises a ValueError.
    except ValueError:
        yield "EMBEDDER must be a URL."
        return
    if is_address and not is_valid:
        yield "EMBEDDER must be minilm, fastembed, or the http or https URL of an OpenAI-compatible API."
    if is_address and "@" in address.netloc:
        yield "EMBEDDER must not contain a password: set EMBEDDER_KEY."
    if is_address and not model:
        yield "EMBEDDER requires EMBEDDER_MODEL: the name of the model at that address."
    if model and not is_address and embedder != "fastembed":
        yield "EMBEDDER_MODEL requires an address or fastembed in EMBEDDER."
    if key and not is_address:
        yield "EMBEDDER_KEY requires an address in EMBEDDER."
    if not (key.isascii() and key.isprintable()) or " " in key:
        yield "EMBEDDER_KEY must be ASCII without spaces."


def model_problems(url: str, model: str, key: str) -> Iterator[str]:
    """Yield a sentence for each problem of the settings for the language model."""
    parts = split_url(url)
    if url and (not _is_web_url(url) or parts.query or parts.fragment):
        yield "LLM_URL must be the http or https base URL of an OpenAI-compatible API, without a password."
    if url and not model:
        yield "LLM_URL requires LLM_MODEL: the name of the model at that address."
    if not url and (model or key):
        yield "LLM_MODEL and LLM_KEY require LLM_URL."
    if not (key.isascii() and key.isprintable()) or " " in key:
        yield "LLM_KEY must be ASCII without spaces."


MIN_TOKEN_LENGTH = 32


def operator_problems(tokens: Sequence[str], webhook_url: str, webhook_secret: str, upgrade_url: str) -> Iterator[str]:
    """Yield a sentence for each problem of the operator's settings."""
    if len(tokens) > 2 or any(len(token) < MIN_TOKEN_LENGTH or not token.isascii() for token in tokens):
        yield (
            f"OPERATOR_TOKEN must be one or two tokens of at least {MIN_TOKEN_LENGTH} ASCII characters, separated by a "
            "space."
        )
    if webhook_url and not _is_web_url(webhook_url):
        yield "OPERATOR_WEBHOOK_URL must be an http or https URL."
    if bool(webhook_url) != bool(webhook_secret):
        yield "OPERATOR_WEBHOOK_URL and OPERATOR_WEBHOOK_SECRET require each other."
    if webhook_secret and not _is_webhook_secret(webhook_secret):
        yield "OPERATOR_WEBHOOK_SECRET must be whsec_ and the Base64 of 24 to 64 bytes."
    filled_in = fill_in(upgrade_url, account_id=1, plan="free")
    if upgrade_url and not (_is_web_url(filled_in) and split_url(filled_in).netloc == split_url(upgrade_url).netloc):
        yield "UPGRADE_URL must be an http or https URL, with no placeholders in its host."
    if any(brace in filled_in for brace in "{}"):
        yield "UPGRADE_URL may contain only the placeholders {account} and {plan}."


def fill_in(upgrade_url: str, *, account_id: int, plan: str) -> str:
    """Return the URL at which an account upgrades to a plan."""
    return upgrade_url.replace("{account}", str(account_id)).replace("{plan}", quote(plan, safe=""))


FOOTER_LINKS = {"status_url": "Status", "privacy_url": "Privacy", "terms_url": "Terms", "imprint_url": "Imprint"}
"""Maps settings with links of the footer to the texts of the links, in display order."""


def link_problem(name: str, url: str) -> str:
    """Return a sentence that says why a setting of ``FOOTER_LINKS`` is invalid; empty if it is valid or not set."""
    is_path = url.startswith("/") and url[1:2] not in ("/", "\\")  # Browsers take both as the start of a host.
    if not url or _is_web_url(url) or (is_path and _is_one_word(url)):
        return ""
    return f"{name.upper()} must be an http or https URL, or a path that begins with a single slash."


def _is_one_word(url: str) -> bool:
    return url.isprintable() and " " not in url


def _is_web_url(url: str) -> bool:
    parts = split_url(url)
    try:
        has_valid_port = parts.port is None or parts.port > 0
    except ValueError:
        return False
    is_web = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    return is_web and has_valid_port and _is_one_word(url)


def _is_webhook_secret(secret: str) -> bool:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except ValueError:
        return False
    return secret.startswith("whsec_") and 24 <= len(key) <= 64
