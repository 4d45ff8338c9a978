"""Keys with their account and rights, cached per process under the account's credential version.

The counter store returns the version together with every request's limits. A cached entry is used only while its
version is current, so a disabled, rotated, or deleted key, a paused site, or a changed plan takes effect with the next
request, in every process.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from app.clock import now
from app.counters.base import CounterStore
from app.counters.values import CredentialVersion
from app.models import Account, Key, Site
from app.plans import PlanLimits, PlanTable
from app.services.access.rights import Rights, read_scopes, rights_of
from app.services.search_rules import NO_RULES, RuleSet
from app.services.search_settings import Gains, may_ask, read_gains, read_rules, read_settings
from app.services.site_fields import kinds_of
from app.storage.database import Database
from backends.field_rules import is_known
from backends.filters import Filter, fields_of, parse_filter
from backends.query import FieldKind, FieldKinds, SearchSettings
from schemas.validation.keys import AllowedOrigins, Scope, read_allowed_origins


@dataclass(frozen=True, slots=True)
class SiteRecord:
    """Properties of a site, or of a collection, that a search needs.

    Attributes:
        ask: Whether visitors can ask questions that a language model answers.
        ask_instructions: The owner's instructions for the model.
        searched_sites: The sites that a collection searches, without paused and deleted ones; ``None`` for a site.
    """

    id: int
    account_id: int
    name: str
    description: str
    url: str
    domain: str
    index: str
    engine: str
    engine_index: str
    active: bool
    deleted: bool
    agents: bool
    public_epoch: int
    kinds: FieldKinds
    settings: SearchSettings
    suggestions_hidden: tuple[str, ...] = ()
    rules: RuleSet = NO_RULES
    no_results_links: tuple[Mapping[str, str], ...] = ()
    no_results_popular: int = 0
    searched_sites: tuple[SearchedSite, ...] | None = None
    ask: bool = False
    ask_instructions: str = ""


@dataclass(frozen=True, slots=True)
class SearchedSite:
    """A site that a collection searches.

    Attributes:
        record: The site.
        label: Name of the site in the collection.
        weight: Factor for the scores of its hits.
        condition: Condition that its hits meet; ``None`` for all documents.
    """

    record: SiteRecord
    label: str
    weight: float
    condition: Filter | None


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """An API key, detached from its database session.

    Attributes:
        usable_until: Time at which this token expires: the key's expiry, or the end of a rotation's overlap.
        was_rotated: Whether this is the previous token of a rotated key.
        scopes: Scopes of a private key; ``None`` for all.
        site_only: Whether a private key is restricted to its own site.
        allowed_origins: Origins of the pages that may use a public key; ``None`` for all.
    """

    id: str
    account_id: int
    site_id: int
    type: str
    active: bool
    usable_until: datetime | None
    was_rotated: bool
    token_version: int
    scopes: frozenset[Scope] | None = None
    site_only: bool = False
    allowed_origins: AllowedOrigins | None = None

    @property
    def rights(self) -> Rights:
        """Rights of the key."""
        return rights_of(self.type, self.scopes, self.site_only, self.site_id)


@dataclass(slots=True)
class AccountRecord:
    """An account with its plan, and with the sites that requests have used.

    Attributes:
        suspension: The operator's message to members of a suspended account; ``None`` if it is not suspended.
        confirm_by: Deadline for an owner to confirm their email address, after which keys stop; ``None`` if not
            required.
    """

    id: int
    plan: str
    limits: PlanLimits
    suspension: str | None = None
    confirm_by: datetime | None = None
    sites: dict[int, SiteRecord] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Credentials:
    """A key with its account, and the version under which they were loaded (``None`` if they must not be cached).

    ``key`` is ``None`` for a site's public engine key.
    """

    key: KeyRecord | None
    account: AccountRecord
    credential_version: CredentialVersion | None


def account_record(plans: PlanTable, account: Account) -> AccountRecord:
    """Return ``account`` as a record that outlives its database session."""
    limits = plans.limits_of(account.plan, account.limit_overrides)
    suspension = None if account.suspended_at is None else account.suspension_reason
    return AccountRecord(account.id, account.plan, limits, suspension, account.confirm_by)


def site_record(site: Site, learned: Gains | None = None) -> SiteRecord:
    """Return ``site`` as a record that outlives its database session.

    Args:
        learned: Ranking learned from clicks (:func:`read_gains`), for callers that search.
    """
    settings = read_settings(site.search_settings)
    return SiteRecord(
        id=site.id,
        account_id=site.account_id,
        name=site.name,
        description=site.description,
        url=site.url,
        domain=site.domain,
        index=site.index,
        engine=site.engine,
        engine_index=site.engine_index,
        active=site.active,
        deleted=site.deleted_at is not None,
        agents=site.agents,
        public_epoch=site.public_epoch,
        kinds=kinds_of(site),
        settings=replace(settings, learned=learned) if learned else settings,
        suggestions_hidden=tuple(site.search_settings.get("suggestions_hidden", ())),
        rules=read_rules(site.search_settings),
        no_results_links=tuple(site.search_settings.get("no_results_links", ())),
        ask=may_ask(site.search_settings),
        ask_instructions=site.search_settings.get("ask_instructions", ""),
        no_results_popular=site.search_settings.get("no_results_popular", 0),
    )


def load_site_record(session: Session, site: Site) -> SiteRecord:
    """Return ``site`` as a record for searches, with what it learned from clicks, or with the sites it searches."""
    record = site_record(site, read_gains(session, site))
    if site.searched_sites is None:
        return record
    named = {entry["site_id"]: entry for entry in site.searched_sites}
    is_searched = Site.id.in_(named), Site.account_id == site.account_id, Site.active, Site.deleted_at.is_(None)
    found = {
        searched.id: load_site_record(session, searched)
        for searched in session.scalars(select(Site).where(*is_searched))
    }
    searched_sites = tuple(
        SearchedSite(
            found[site_id],
            entry["label"] or found[site_id].name,
            entry["weight"],
            parse_filter(entry["filters"]) if entry["filters"] else None,
        )
        for site_id, entry in named.items()
        if site_id in found
    )
    kinds: dict[str, frozenset[FieldKind]] = {}
    for searched in searched_sites:
        for name, field_kinds in searched.record.kinds.items():
            kinds[name] = kinds.get(name, frozenset()) | field_kinds
        # The filter of a site stays valid if its documents lose a field, or do not have it yet.
        if searched.condition is not None:
            kinds |= {name: frozenset() for name in fields_of(searched.condition) if not is_known(name, kinds)}
    return replace(
        record,
        # Agents may read pages only where each site's owner allows it.
        agents=bool(searched_sites) and all(searched.record.agents for searched in searched_sites),
        kinds=kinds,
        settings=SearchSettings(answers=any(searched.record.settings.answers for searched in searched_sites)),
        no_results_links=next(
            (links for searched in searched_sites if (links := searched.record.no_results_links)), ()
        ),
        suggestions_hidden=tuple(pattern for each in searched_sites for pattern in each.record.suggestions_hidden),
        searched_sites=searched_sites,
    )


def with_settings(record: SiteRecord, stored: Mapping[str, Any], learned: Gains) -> SiteRecord:
    """Return a site with other search settings, for previews.

    Args:
        learned: Ranking learned from clicks.
    """
    return replace(record, settings=replace(read_settings(stored), learned=learned), rules=read_rules(stored))


def load_credentials(
    session: Session, plans: PlanTable, token_hash: str, credential_version: CredentialVersion | None
) -> Credentials | None:
    """Return the key that has this token, with its account; ``None`` if no key has it.

    Args:
        credential_version: The account's version, read before this call; ``None`` if it is not known yet.
    """
    row = session.execute(
        select(Key, Account)
        .join(Account, Account.id == Key.account_id)
        # Looking up a hash leaks nothing through its timing: only the service can compute the hash of a guess.
        # Until the overlap ends, the previous token of a rotated key is also valid.
        .where(or_(Key.token_hash == token_hash, Key.previous_token_hash == token_hash))
    ).first()
    if row is None:
        return None
    key, account = row
    was_rotated = key.token_hash != token_hash
    usable_until = key.expires_at
    if was_rotated:
        limits = [moment for moment in (key.expires_at, key.previous_expires_at) if moment is not None]
        # The previous token ends with the overlap or with the key, whichever comes first.
        usable_until = min(limits)
    return _credentials(
        session, plans, account, key.site, _key_record(key, usable_until, was_rotated), credential_version
    )


def load_engine_credentials(
    session: Session,
    plans: PlanTable,
    account_id: int,
    site_id: int,
    key_id: str | None,
    credential_version: CredentialVersion | None,
) -> Credentials | None:
    """Return an engine key's credentials: its site and account, and its API key unless it is a public engine key.

    Returns ``None`` if the site, the account, or the API key was deleted.

    Args:
        key_id: The API key that the engine key was issued for; ``None`` for a public engine key.
        credential_version: See :func:`load_credentials`.
    """
    row = session.execute(
        select(Site, Account)
        .join(Account, Account.id == Site.account_id)
        .where(Site.id == site_id, Site.account_id == account_id)
    ).first()
    if row is None:
        return None
    site, account = row
    record = None
    if key_id is not None:
        key = session.scalar(select(Key).where(Key.id == key_id, Key.site_id == site_id))
        if key is None:
            return None
        record = _key_record(key, key.expires_at, was_rotated=False)
    return _credentials(session, plans, account, site, record, credential_version)


def _key_record(key: Key, usable_until: datetime | None, was_rotated: bool) -> KeyRecord:
    return KeyRecord(
        id=key.id,
        account_id=key.account_id,
        site_id=key.site_id,
        type=key.type,
        active=key.active,
        usable_until=usable_until,
        was_rotated=was_rotated,
        token_version=key.token_version,
        scopes=read_scopes(key.scopes),
        site_only=key.site_only,
        allowed_origins=None if key.allowed_origins is None else read_allowed_origins(key.allowed_origins),
    )


def _credentials(
    session: Session,
    plans: PlanTable,
    account: Account,
    site: Site,
    key: KeyRecord | None,
    credential_version: CredentialVersion | None,
) -> Credentials:
    record = account_record(plans, account)
    record.sites[site.id] = load_site_record(session, site)
    # While another process commits a change, a load may see either state, so it must not be cached.
    settled = credential_version if credential_version is not None and credential_version.is_settled else None
    return Credentials(key, record, settled)


class CredentialCache:
    """LRU cache of credentials, by token hash or by the claims of an engine key.

    Args:
        size: Maximum number of entries.
    """

    def __init__(self, size: int = 10_000):
        self._size = size
        self._entries: OrderedDict[str, Credentials] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, token_hash: str) -> Credentials | None:
        """Return the cached entry of a token. The caller must check that its version is current."""
        with self._lock:
            entry = self._entries.get(token_hash)
            if entry is not None:
                self._entries.move_to_end(token_hash)
            return entry

    def keep(self, token_hash: str, credentials: Credentials | None) -> None:
        """Cache ``credentials`` if they were loaded under a settled version; otherwise drop the token's entry."""
        with self._lock:
            self._entries.pop(token_hash, None)
            if credentials is not None and credentials.credential_version is not None:
                self._entries[token_hash] = credentials
                while len(self._entries) > self._size:
                    self._entries.popitem(last=False)


@contextmanager
def credential_change(database: Database, counters: CounterStore, account_id: int) -> Iterator[Session]:
    """Open a write transaction that changes an account's :class:`Credentials`.

    Other processes are notified before and after the commit. The first notification makes them bypass their caches, so
    that a crash of this process cannot leave stale entries in use; the second lets them cache again. If the block
    raises, nothing changes and no notification is sent.

    Raises:
        CountersUnavailable: Other processes could not be notified. Nothing was changed, unless the notification after
            the commit failed; their caches are then bypassed until a background job ends the change.
    """
    with ExitStack() as after_commit, database.write() as session:
        yield session
        # Flush first, so that errors surface before other processes are notified.
        session.flush()
        # Entered before the commit and left after it, because the stack encloses the transaction.
        after_commit.enter_context(changed_credentials(counters, account_id))


@contextmanager
def changed_credentials(counters: CounterStore, account_id: int) -> Iterator[None]:
    """Notify other processes before and after the enclosed commit."""
    counters.begin_credential_change(account_id, now=now().timestamp())
    try:
        yield
    finally:
        counters.end_credential_change(account_id, now=now().timestamp())
