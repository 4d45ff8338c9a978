"""All settings in one table: name, default, type, and help. Read from the environment once, at startup."""

from __future__ import annotations

import errno
import math
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from dataclasses import field as dataclass_field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from app.feature_settings import (
    FOOTER_LINKS,
    email_problems,
    embedder_problems,
    link_problem,
    model_problems,
    oidc_problems,
    operator_problems,
    split_url,
)
from schemas.validation.problems import closest_name

UNLIMITED = 2147483647
"""The number that means "unlimited" in responses where clients expect an integer."""


class ConfigurationError(Exception):
    """A setting has the wrong type, is out of range, or contradicts another, so the service does not start.

    Attributes:
        exit_code: Exit code of the process. The systemd units do not restart it after ``EX_CONFIG``.
    """

    exit_code = os.EX_CONFIG


class FolderUnavailable(ConfigurationError):
    """DATA_DIR cannot be used. It may be again without any change of settings, such as after a full disk."""

    exit_code = 1


def _setting(default: Any, help: str) -> Any:
    return dataclass_field(default=default, metadata={"help": help})


_LINK_HELP = "an http or https URL, or a path of this host. Empty: no link."


@dataclass(frozen=True)
class Settings:
    """The service's settings. Each field is read from the environment variable with its name in upper case."""

    data_dir: str = _setting("var", "Folder for the database, indexes, counters, and journals.")
    secret_key: str = _setting(
        "",
        "Secret used to hash keys and sessions, and for one-time codes, at least 32 characters. "
        "Empty: generated once and stored in DATA_DIR/secret_key.",
    )
    database_url: str = _setting("", "SQLite file or PostgreSQL (postgresql://…). Empty: DATA_DIR/service.db.")
    database_timeout_seconds: float = _setting(5.0, "Seconds a request waits for a locked or unreachable database.")
    search_url: str = _setting(
        "",
        "Search engine: tantivy:///folder, memory://, typesense://:key@host:8108, or meilisearch://:key@host:7700; "
        "or several, separated by blanks. Empty: embedded, in DATA_DIR/indexes.",
    )
    search_public_url: str = _setting(
        "", "URL at which browsers reach the engine directly. Empty: they use the gateway."
    )
    limits_url: str = _setting(
        "", "Counter store: sqlite:///file, redis://…, or memory:// (one process only). Empty: DATA_DIR/counters.db."
    )
    limits_timeout_seconds: float = _setting(
        1.0, "Seconds a request waits for Redis. Requests wait up to 20 seconds for a busy counter file."
    )
    public_url: str = _setting("", "Base URL of this service as users see it. Empty: taken from each request.")
    trusted_proxies: int = _setting(0, "Number of proxies in front that set X-Forwarded-For and X-Forwarded-Proto.")
    plans_file: str = _setting("", "TOML file that replaces the default plans.")
    default_plan: str = _setting("free", "Plan of newly registered accounts.")
    registration: bool = _setting(True, "Whether anyone can register an account.")
    max_body_bytes: int = _setting(1_048_576, "Maximum size of a request body, in bytes.")
    max_bulk_body_bytes: int = _setting(16_777_216, "Maximum size of a bulk request body, in bytes.")
    max_answer_bytes: int = _setting(
        16_777_216, "Maximum bytes of documents in one search response, highlighted copies included."
    )
    max_site_fields: int = _setting(400, "Maximum number of distinct custom fields per site.")
    event_retention_days: int = _setting(
        400, "Days after which searches, clicks, and their roll-ups are deleted; at least 91."
    )
    crawl_private_addresses: bool = _setting(
        False,
        "Whether the crawler and webhooks may connect to loopback, private, and link-local addresses, for an intranet.",
    )
    crawl_browser: str = _setting(
        "",
        "Chromium for pages that need JavaScript: a path or a URL (extra `browser`). Empty: none.",
    )
    crawl_runs: int = _setting(
        4,
        "Sources that this machine crawls at the same time, in a process of low priority that the service starts. "
        "0: only `site-search worker` crawls.",
    )
    docs_search_key: str = _setting(
        "",
        "Public key of a site that contains this documentation, which the search box at /docs then searches. "
        "Empty: the key in DATA_DIR/docs_search_key, which `site-search demo` writes; without one, a built-in search.",
    )
    smtp_url: str = _setting(
        "",
        "Mail server: smtp://user:password@host:587 or smtps://…, with special characters percent-encoded. "
        "Empty: no email is sent.",
    )
    mail_from: str = _setting(
        "", "Sender of emails, such as `Site Search <search@example.com>`; required with SMTP_URL, as is PUBLIC_URL."
    )
    operator_contact: str = _setting(
        "",
        "Contact for customers who need help: an email address, a URL, or a short text. Shown on pages and in emails.",
    )
    oidc_issuer: str = _setting(
        "",
        "Issuer of the OpenID Connect provider with which people log in, such as `https://accounts.google.com`. "
        "Requires OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, and PUBLIC_URL. Empty: people log in with passwords only.",
    )
    oidc_client_id: str = _setting("", "Client ID issued by the provider.")
    oidc_client_secret: str = _setting("", "Client secret issued by the provider.")
    oidc_allowed_domains: str = _setting(
        "", "Domains of the email addresses that may log in with the provider, separated by commas. Empty: all."
    )
    oidc_name: str = _setting("", "Name of the provider on the login button. Empty: the host of OIDC_ISSUER.")
    password_login: bool = _setting(
        True, "Whether people can log in with passwords. `false` leaves only the OpenID Connect provider."
    )
    embedder: str = _setting(
        "",
        "Computes vectors of texts: `minilm` (extra `minilm`), `fastembed` (extra `fastembed`), or the full URL of "
        "an OpenAI-compatible API (extra `embeddings`). Empty: searches match words only.",
    )
    embedder_model: str = _setting(
        "", "Name of the model at the URL in EMBEDDER, where it is required, or of a model of `fastembed`."
    )
    embedder_key: str = _setting("", "Bearer token for the URL in EMBEDDER. Empty: none is sent.")
    llm_url: str = _setting(
        "",
        "Base URL of an OpenAI-compatible API with the language model that answers questions, such as "
        "`https://api.openai.com/v1`. Empty: questions are not answered.",
    )
    llm_model: str = _setting("", "Name of the model at LLM_URL, where it is required.")
    llm_key: str = _setting("", "Bearer token for LLM_URL. Empty: none is sent.")
    llm_timeout: float = _setting(
        30.0, "Seconds in which the model must complete an answer, 1 to 120; it must begin in half of them."
    )
    operator_token: str = _setting(
        "",
        "Bearer token for the operator API, at least 32 characters; while you change it, the new and the old one, "
        "separated by a space. Empty: the operator API is off.",
    )
    operator_webhook_url: str = _setting(
        "", "URL that receives webhook events on all accounts; requires OPERATOR_WEBHOOK_SECRET. Empty: none is sent."
    )
    operator_webhook_secret: str = _setting(
        "", "Secret that signs these events: `whsec_` and the Base64 of 24 to 64 random bytes."
    )
    upgrade_url: str = _setting(
        "",
        "URL of the button *Upgrade* on the plans page, such as a payment page; `{account}` becomes the account's ID, "
        "`{plan}` the plan's name. Empty: no button.",
    )
    status_url: str = _setting("", f"Link *Status* in the footer of all pages: {_LINK_HELP}")
    privacy_url: str = _setting("", f"Link *Privacy* in the footer: {_LINK_HELP}")
    terms_url: str = _setting("", f"Link *Terms* in the footer: {_LINK_HELP}")
    imprint_url: str = _setting("", f"Link *Imprint* in the footer: {_LINK_HELP}")
    metrics_token: str = _setting("", "Bearer token for /metrics; not needed for direct loopback connections.")
    log_level: str = _setting("INFO", "DEBUG, INFO, WARNING, or ERROR.")

    @property
    def data_path(self) -> Path:
        """``data_dir`` as an absolute path."""
        return Path(self.data_dir).absolute()

    @property
    def sends_email(self) -> bool:
        """Whether a mail server is configured."""
        return bool(self.smtp_url)

    @property
    def operator_tokens(self) -> tuple[str, ...]:
        """Tokens that the operator API accepts; none if it is off."""
        return tuple(self.operator_token.split())

    @property
    def secrets(self) -> frozenset[str]:
        """All keys, tokens, and passwords, which no log may contain."""
        words = [word for each in fields(self) for word in str(getattr(self, each.name)).split()]
        passwords = [password for word in words if (password := split_url(word).password)]
        tokens = (*self.operator_tokens, self.operator_webhook_secret, self.metrics_token, self.oidc_client_secret)
        keys = (self.secret_key, self.embedder_key, self.llm_key)
        return frozenset(filter(None, (*keys, *tokens, *passwords, *map(unquote, passwords))))

    @property
    def allowed_domains(self) -> frozenset[str]:
        """Email domains whose users may log in with the OpenID Connect provider, in lower case; empty for all."""
        domains = (domain.strip().lower() for domain in self.oidc_allowed_domains.split(","))
        return frozenset(domain for domain in domains if domain)

    @property
    def provider_name(self) -> str:
        """Display name of the OpenID Connect provider; empty if none is configured."""
        return self.oidc_name or urlsplit(self.oidc_issuer).netloc


SETTINGS: dict[str, Any] = {f.name.upper(): f for f in fields(Settings)}
"""Maps each environment variable to its field, which has the default, type, and help."""

SERVER_SETTINGS = {
    "HOST": ("127.0.0.1", "Address that the service listens on."),
    "PORT": ("8000", "Port that it listens on."),
    "WEB_CONCURRENCY": ("one per core", "Number of gunicorn worker processes."),
    "WEB_THREADS": ("8", "Threads per worker process."),
}
"""Environment variables that app/server/ reads."""


def find_misspelled(environ: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yield a sentence for each environment variable that is not a setting but resembles one.

    Args:
        environ: The environment; by default the process's own.
    """
    names = {*SETTINGS, *SERVER_SETTINGS}
    for name, value in sorted((os.environ if environ is None else environ).items()):
        # Kubernetes sets variables such as SEARCH_PORT=tcp://10.0.0.1:80 for each service.
        if name not in names and not value.startswith("tcp://"):
            group = [other for other in names if other.startswith(name.split("_")[0] + "_")]
            probable_name = closest_name(name, group) or closest_name(name, SETTINGS, 0.8)
            if probable_name is not None:
                yield f"{name} is not a setting of this service; did you mean {probable_name}?"


def load_settings(environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
    """Return validated settings from the environment, with defaults derived from DATA_DIR filled in.

    Args:
        environ: The environment; by default the process's own.
        overrides: Field values that take precedence over the environment (tests).

    Raises:
        ConfigurationError: A value has the wrong type, is out of range, or contradicts another.
    """
    settings, problems = check_settings(environ, **overrides)
    if problems:
        raise ConfigurationError(" ".join(problems))
    return settings


def check_settings(environ: Mapping[str, str] | None = None, **overrides: Any) -> tuple[Settings, list[str]]:
    """Return the settings and a list of all problems, as sentences. Unreadable values are treated as unset.

    Raises:
        ConfigurationError: DATA_DIR cannot be used.
    """
    environ = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    problems: list[str] = []
    for name, f in SETTINGS.items():
        if f.name in overrides:
            values[f.name] = overrides[f.name]
        elif environ.get(name, "") != "":
            try:
                values[f.name] = _parse(name, environ[name], type(f.default))
            except ConfigurationError as error:
                problems.append(str(error))
    unknown = set(overrides) - {f.name for f in fields(Settings)}
    if unknown:
        raise ConfigurationError(f"unknown settings: {', '.join(sorted(unknown))}")
    settings = Settings(**values)
    problems.extend(_problems(settings))
    return _complete(settings), problems


def _parse(name: str, text: str, kind: type) -> Any:
    if kind is bool:
        lowered = text.strip().lower()
        if lowered in {"1", "true", "yes", "on"}:
            return True
        if lowered in {"0", "false", "no", "off"}:
            return False
        raise ConfigurationError(f"{name} must be true or false.")
    if kind is str:
        return text
    try:
        return kind(text)
    except ValueError as error:
        raise ConfigurationError(f"{name} must be a number.") from error


def _problems(settings: Settings) -> Iterator[str]:
    for name in ("public_url", "search_public_url"):
        value = getattr(settings, name)
        parts = split_url(value)
        if value and (parts.scheme not in {"http", "https"} or not parts.netloc or parts.query or parts.fragment):
            yield f"{name.upper()} must be an http or https URL."
    if not (settings.crawl_browser or "/").startswith(("/", "ws://", "wss://", "http://", "https://")):
        yield "CRAWL_BROWSER must be an absolute path, or a ws, wss, http, or https URL."
    for name in ("trusted_proxies", "crawl_runs"):
        if getattr(settings, name) < 0:
            yield f"{name.upper()} must not be negative."
    for name in (
        "max_body_bytes",
        "max_bulk_body_bytes",
        "max_answer_bytes",
        "max_site_fields",
        "event_retention_days",
        "database_timeout_seconds",
        "limits_timeout_seconds",
    ):
        if not 0 < getattr(settings, name) < math.inf:
            yield f"{name.upper()} must be greater than zero."
    if settings.event_retention_days < 91:
        yield "EVENT_RETENTION_DAYS must be at least 91: analytics cover 90 days."
    if settings.log_level not in {"DEBUG", "INFO", "WARNING", "ERROR"}:
        yield "LOG_LEVEL must be DEBUG, INFO, WARNING, or ERROR."
    if settings.secret_key and len(settings.secret_key) < 32:
        yield "SECRET_KEY must have at least 32 characters."
    shared = settings.database_url and not settings.database_url.startswith("sqlite")
    if shared and not settings.secret_key:
        yield "SECRET_KEY is required with PostgreSQL: every machine needs the same one."
    if settings.docs_search_key and not settings.docs_search_key.startswith("svc_pub_"):
        yield "DOCS_SEARCH_KEY must be a public key: it appears in pages."
    yield from email_problems(settings.smtp_url, settings.mail_from, settings.public_url, settings.operator_contact)
    yield from oidc_problems(
        issuer=settings.oidc_issuer,
        client=(settings.oidc_client_id, settings.oidc_client_secret),
        public_url=settings.public_url,
        allowed_domains=settings.allowed_domains,
        name=settings.oidc_name,
        password_login=settings.password_login,
    )
    yield from embedder_problems(settings.embedder, settings.embedder_model, settings.embedder_key)
    yield from model_problems(settings.llm_url, settings.llm_model, settings.llm_key)
    if not 1 <= settings.llm_timeout <= 120:
        yield "LLM_TIMEOUT must be from 1 to 120."
    yield from operator_problems(
        settings.operator_tokens,
        settings.operator_webhook_url,
        settings.operator_webhook_secret,
        settings.upgrade_url,
    )
    yield from (problem for name in FOOTER_LINKS if (problem := link_problem(name, getattr(settings, name))))
    if settings.search_public_url:
        if not settings.search_url.startswith(("typesense", "meilisearch")):
            yield "SEARCH_PUBLIC_URL requires a search server: typesense or meilisearch."
        elif len(settings.search_url.split()) > 1:
            yield "SEARCH_PUBLIC_URL requires a single search server: browsers reach one engine directly."


def _complete(settings: Settings) -> Settings:
    folder = settings.data_path
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        secret_key = settings.secret_key or _stored_secret(folder / "secret_key")
        docs_search_key = settings.docs_search_key or read_docs_search_key(folder)
    except OSError as error:
        raise FolderUnavailable(
            f"DATA_DIR {folder} must be a folder that the service can write to: {error.strerror}."
        ) from error
    filled = {f.name: getattr(settings, f.name) for f in fields(Settings)}
    filled["secret_key"] = secret_key
    filled["docs_search_key"] = docs_search_key
    filled["database_url"] = settings.database_url or f"sqlite:///{folder / 'service.db'}"
    filled["search_url"] = settings.search_url or f"tantivy://{folder / 'indexes'}"
    filled["limits_url"] = settings.limits_url or f"sqlite:///{folder / 'counters.db'}"
    filled["public_url"] = settings.public_url.rstrip("/")
    filled["search_public_url"] = settings.search_public_url.rstrip("/")
    return Settings(**filled)


def docs_search_key_file(folder: Path) -> Path:
    """Return the path of the file with the demo's key for searching the documentation."""
    return folder / "docs_search_key"


def read_docs_search_key(folder: Path) -> str:
    """Return the demo's key for searching the documentation; empty without a demo."""
    path = docs_search_key_file(folder)
    return path.read_text().strip() if path.exists() else ""


def _stored_secret(path: Path) -> str:
    """Return the secret stored in ``path``. The first process that needs it creates it."""
    if not path.exists():
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(48))
            file.flush()
            # The secret must not be lost in a power failure after other processes have used it.
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            pass  # Another process was first; its secret applies.
        finally:
            temporary.unlink()
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)  # The file's name must not be lost either.
        finally:
            os.close(folder)
    secret = path.read_text().strip()
    if len(secret) < 32:
        raise ConfigurationError(f"{path} does not contain a secret of at least 32 characters.")
    return secret
