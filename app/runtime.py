"""The components of a running process, created once by ``create_app`` and opened on first use."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import cast

from flask import Flask, current_app

from app.config import ConfigurationError, Settings
from app.counters import create_counters
from app.counters.base import CounterStore
from app.counters.limiter import RequestLimiter
from app.counters.values import CountersUnavailable
from app.crawl.fetch.values import NotIndexed, user_agent
from app.crawl.run.preview import Previewer
from app.crawl.run.visits.turns import SharedTurns
from app.crawl.sources.removal import SourceRemoval
from app.feature_settings import embedder_problems, model_problems
from app.plans import SHIPPED_PLANS, PlanTable
from app.services.access.credentials import CredentialCache
from app.services.access.key_sightings import KeyExposures, KeysLastUsed
from app.services.accounts import emails
from app.services.accounts.oidc import Provider
from app.services.analytics.event_ingestion import WaitingEvents
from app.services.analytics.events import EventRecorder
from app.services.analytics.report_parts import RecentResults
from app.services.analytics.visitors import VisitorKeys
from app.services.asks.meaning import Meaning
from app.services.asks.model import LanguageModel
from app.services.asks.slots import AskSlots
from app.services.emails.delivery import EmailSender
from app.services.emails.notices import queue_notice
from app.services.embedding.embedder import Embedder, GuardedEmbedder
from app.services.embedding.local_server import MODEL, TOKENIZER
from app.services.embedding.stored_vectors import VectorReader
from app.services.embedding.vectorizer import Vectorizer
from app.services.engines import EngineLocks, Engines, TaskHandler, run_due_tasks
from app.services.health import HealthMonitor
from app.services.indexing.documents import DocumentWriter
from app.services.indexing.indexer import Indexer
from app.services.indexing.site_indexes import Rebuilder
from app.services.search.mixed_order import MixedOrder
from app.services.search.popular_pages import PopularPages
from app.services.search.search import Searcher
from app.services.search.suggestions import Suggester
from app.services.syncs import Syncs
from app.services.usage.cpu_limits import CpuLimits, ThreadShares
from app.services.usage.daily_usage import CopiedUsage, LateCharges, UsageCopies
from app.services.webhook_delivery import Deliverer, NotSent, Receiver
from app.storage.database import Database, is_unavailable
from app.storage.files import FileCopies
from app.storage.machine_process import Locks, create_locks
from backends.registry import create_backend

WEBHOOK_SECONDS = 10.0
"""Timeout in seconds for one attempt to deliver an event to a webhook."""

log = logging.getLogger(__name__)


@dataclass
class Runtime:
    """The components that requests, commands, and jobs share."""

    settings: Settings
    plans: PlanTable
    database: Database
    locks: Locks
    counters: CounterStore
    limiter: RequestLimiter
    engines: Engines
    events: EventRecorder
    indexer: Indexer
    searcher: Searcher
    suggester: Suggester
    popular_pages: PopularPages
    writer: DocumentWriter
    syncs: Syncs
    previewer: Previewer
    rebuilder: Rebuilder
    keys_last_used: KeysLastUsed
    key_exposures: KeyExposures
    usage_copies: UsageCopies
    late_charges: LateCharges
    health: HealthMonitor
    waiting_events: WaitingEvents
    visitor_keys: VisitorKeys
    email_sender: EmailSender
    deliverer: Deliverer
    file_copies: FileCopies
    cpu_limits: CpuLimits
    provider: Provider | None = None
    """OpenID Connect provider; ``None`` if not configured."""
    language_model: LanguageModel | None = None
    """Writes answers to questions; ``None`` unless LLM_URL is set."""
    ask_slots: AskSlots = field(default_factory=AskSlots)
    embedder: Embedder | None = None
    meaning: Meaning | None = None
    """Compares questions with pages; ``None`` unless EMBEDDER is set."""
    vectorizer: Vectorizer | None = None
    """Computes document vectors; ``None`` unless EMBEDDER is set."""
    credentials: CredentialCache = field(default_factory=CredentialCache)
    shares: ThreadShares = field(default_factory=ThreadShares)
    recent_results: RecentResults = field(default_factory=RecentResults)
    task_handlers: Mapping[str, TaskHandler] = field(default_factory=dict)

    def close(self) -> None:
        """Release all connections, files, and processes."""
        if self.embedder is not None:
            self.embedder.close()
        self.searcher.close()
        self.counters.close()
        self.database.dispose()
        # Last, since it may wait for a merge, and gunicorn may kill the worker meanwhile.
        self.engines.close()

    def run_engine_tasks(self) -> None:
        """Run due outbox tasks now. If a service is unavailable, the jobs run them later."""
        try:
            run_due_tasks(self.database, self.engines, self.counters, self.task_handlers, limit=10)
        except Exception as error:
            if not (is_unavailable(error) or isinstance(error, CountersUnavailable)):
                raise
            log.warning("outbox tasks are postponed: %s", error)


def create_runtime(settings: Settings, *, background: bool = True) -> Runtime:
    """Create the components for ``settings``, without opening a file or socket.

    Args:
        background: Whether background threads may be started later; tests run the jobs themselves.

    Raises:
        ConfigurationError: A setting cannot be used.
    """
    try:
        database = Database(settings.database_url, busy_timeout_seconds=settings.database_timeout_seconds)
        locks = create_locks(database, settings.data_path)
        copies = CopiedUsage(database).read
        counters = create_counters(settings.limits_url, copies, timeout_seconds=settings.limits_timeout_seconds)
        engines = Engines(*(create_backend(url, EngineLocks(locks)) for url in settings.search_url.split()))
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
    indexer = Indexer(database, locks, counters, engines)
    plans = PlanTable(settings.plans_file or SHIPPED_PLANS)
    _check_plan_engines(plans, engines)
    if settings.crawl_browser:
        _require("CRAWL_BROWSER", "browser", BROWSER_PACKAGES)
    if settings.default_plan not in plans:
        raise ConfigurationError(f"DEFAULT_PLAN {settings.default_plan!r} is not defined in the plans file.")
    journals = settings.data_path / "events"
    events = EventRecorder(
        journals,
        database,
        retention_days=settings.event_retention_days,
        background=background,
    )
    usage_copies = UsageCopies(database, counters)
    embedder = create_embedder(settings)
    mixed_order = meaning = None
    if embedder is not None:
        read_vectors = VectorReader(database, embedder.model).read
        mixed_order, meaning = MixedOrder(embedder, read_vectors), Meaning(embedder, read_vectors)
    searcher = Searcher(engines, indexer, events, settings.max_answer_bytes, mixed_order)
    writer = DocumentWriter(database, counters, indexer, settings.max_site_fields)
    return Runtime(
        settings=settings,
        plans=plans,
        database=database,
        locks=locks,
        counters=counters,
        limiter=RequestLimiter(counters),
        engines=engines,
        events=events,
        indexer=indexer,
        searcher=searcher,
        suggester=Suggester(database, searcher),
        popular_pages=PopularPages(database, searcher),
        writer=writer,
        syncs=Syncs(database, counters, indexer),
        previewer=Previewer(
            SharedTurns(database),
            user_agent(settings.public_url),
            private_addresses=settings.crawl_private_addresses,
            has_browser=bool(settings.crawl_browser),
        ),
        rebuilder=Rebuilder(database, locks, engines, indexer),
        keys_last_used=KeysLastUsed(database),
        key_exposures=KeyExposures(database),
        usage_copies=usage_copies,
        late_charges=LateCharges(settings.data_path / "charges", counters, usage_copies),
        health=HealthMonitor(settings.data_path, database, counters, engines),
        waiting_events=WaitingEvents(journals, database),
        visitor_keys=VisitorKeys(database, settings.secret_key),
        email_sender=EmailSender(database, settings, emails.WRITERS),
        provider=_create_provider(settings),
        language_model=_create_language_model(settings),
        embedder=embedder,
        meaning=meaning,
        vectorizer=None if embedder is None else Vectorizer(database, locks, embedder),
        deliverer=_create_deliverer(settings, database),
        file_copies=FileCopies(settings.data_path / "copies"),
        cpu_limits=CpuLimits(counters),
        task_handlers=SourceRemoval(database, writer).handlers,
    )


def _check_plan_engines(plans: PlanTable, engines: Engines) -> None:
    for plan, offer in plans.offers.items():
        try:
            if offer.engine:
                engines.get_named(offer.engine)
        except KeyError:
            raise ConfigurationError(
                f"Plan {plan!r} uses the engine {offer.engine!r}, which SEARCH_URL does not have."
            ) from None


def _create_provider(settings: Settings) -> Provider | None:
    if not settings.oidc_issuer:
        return None
    return Provider(settings.oidc_issuer, settings.oidc_client_id, settings.oidc_client_secret)


def _create_language_model(settings: Settings) -> LanguageModel | None:
    # The doctor also runs with invalid settings, and reports them.
    if not settings.llm_url or any(model_problems(settings.llm_url, settings.llm_model, settings.llm_key)):
        return None
    return LanguageModel(settings.llm_url, settings.llm_model, settings.llm_key, settings.llm_timeout)


def _create_deliverer(settings: Settings, database: Database) -> Deliverer:
    notify_owner = partial(queue_notice, public_url=settings.public_url) if settings.sends_email else None
    operator = None
    if settings.operator_webhook_url:
        # The operator, unlike customers, may use a private address.
        post = partial(_post, replace(settings, crawl_private_addresses=True))
        operator = Receiver(settings.operator_webhook_url, settings.operator_webhook_secret, post)
    return Deliverer(database, settings.secret_key, partial(_post, settings), notify_owner, operator)


def _post(settings: Settings, url: str, headers: Mapping[str, str], body: bytes) -> int:
    """Post a body to a webhook, with the crawler's restrictions on hosts, and return the response status."""
    # The module needs about 5 MB of memory, so only processes that deliver to webhooks load it.
    from app.crawl.fetch.fetching import post
    from app.crawl.fetch.network import Network

    headers = {"User-Agent": user_agent(settings.public_url), **headers}
    try:
        with closing(Network(private_addresses=settings.crawl_private_addresses)) as network:
            return post(network, url, headers, body, max_seconds=WEBHOOK_SECONDS)
    except NotIndexed as error:
        raise NotSent(error.message) from error


REMOTE_PACKAGES = ("numpy",)
"""Import names of the packages of the extra ``embeddings``."""
MINILM_PACKAGES = (MODEL.package, TOKENIZER.package, "onnxruntime", "tokenizers", "numpy")
"""Import names of the packages of the extra ``minilm``."""
FASTEMBED_PACKAGES = ("fastembed", "numpy")
"""Import names of the packages of the extra ``fastembed``."""
BROWSER_PACKAGES = ("playwright",)
"""Import names of the packages of the extra ``browser``."""


def create_embedder(settings: Settings) -> Embedder | None:
    """Create the embedder that the setting EMBEDDER selects; ``None`` if it is empty or invalid. Opens no files or
    sockets.

    Raises:
        ConfigurationError: The embedder's packages are not installed, or fastembed's model is not supported.
    """
    # The doctor also runs with invalid settings, and reports them.
    if not settings.embedder or any(
        embedder_problems(settings.embedder, settings.embedder_model, settings.embedder_key)
    ):
        return None
    if settings.embedder == "minilm":
        _require("EMBEDDER", "minilm", MINILM_PACKAGES)
        from app.services.embedding.local import MINILM, LocalEmbedder

        return GuardedEmbedder(LocalEmbedder(settings.data_path, MINILM))
    if settings.embedder == "fastembed":
        _require("EMBEDDER", "fastembed", FASTEMBED_PACKAGES)
        from app.services.embedding.local import DEFAULT_MODEL, FASTEMBED_MODELS, LocalEmbedder

        model = FASTEMBED_MODELS.get(settings.embedder_model or DEFAULT_MODEL)
        if model is None:
            raise ConfigurationError(f"EMBEDDER_MODEL must be one of {', '.join(FASTEMBED_MODELS)}.")
        return GuardedEmbedder(LocalEmbedder(settings.data_path, model))
    _require("EMBEDDER", "embeddings", REMOTE_PACKAGES)
    from app.services.embedding.remote import RemoteEmbedder

    return GuardedEmbedder(RemoteEmbedder(settings.embedder, settings.embedder_model, settings.embedder_key))


def _require(setting: str, extra: str, packages: tuple[str, ...]) -> None:
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"{setting} requires the extra {extra}, such as `pip install 'site-search-service[{extra}]'`: "
            f"{', '.join(missing)} cannot be found."
        )


def attach(app: Flask, runtime: Runtime) -> None:
    """Attach ``runtime`` to ``app``, for :func:`runtime`."""
    app.extensions["runtime"] = runtime


def runtime() -> Runtime:
    """Return the current application's components."""
    return cast(Runtime, current_app.extensions["runtime"])
