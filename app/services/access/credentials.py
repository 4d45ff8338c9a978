"""The account a key belongs to and what it may use, cached per process under the account's credential version.

The version comes from the counter store with every request's limits. An entry is used only while the
version equals the one it was loaded under, so a toggle, rotation, deletion, pause or plan change made
by any process holds from the next request on, in every process.
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
from app.counters.base import CounterStore, CredentialVersion
from app.models import Account, Key, Site
from app.plans import PlanLimits, PlanTable
from app.services.access.rights import Rights, read_scopes, rights_of
from app.services.search_rules import NO_RULES, RuleSet
from app.services.search_settings import Gains, read_gains, read_rules, read_settings
from app.services.site_fields import kinds_of
from app.storage.database import Database
from backends.base import FieldKinds, SearchSettings
from schemas.validation.keys import AllowedOrigins, Scope, read_allowed_origins


@dataclass(frozen=True, slots=True)
class SiteRecord:
    """Facts that a search needs to know of a site."""

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


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """A key as it stands.

    Attributes:
        usable_until: When this token stops by itself (expiry, or the end of a rotation's overlap).
        was_rotated: Whether this is the token before a rotation.
        scopes: What a private key is for; ``None`` for everything.
        site_only: Whether a private key is for its own site alone.
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
        """The rights of the key."""
        return rights_of(self.type, self.scopes, self.site_only, self.site_id)


@dataclass(slots=True)
class AccountRecord:
    """An account's plan and, as they are asked for, its sites.

    Attributes:
        suspension: What its operator tells those who are kept from it; ``None`` for an account that is not suspended.
        confirm_by: When its keys stop unless an owner has confirmed their e-mail; ``None``: that is not asked.
    """

    id: int
    plan: str
    limits: PlanLimits
    suspension: str | None = None
    confirm_by: datetime | None = None
    sites: dict[int, SiteRecord] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Credentials:
    """A key with its account, and the version they were loaded under (``None``: not to be kept).

    A site's public engine key belongs to no service key.
    """

    key: KeyRecord | None
    account: AccountRecord
    credential_version: CredentialVersion | None


def account_record(plans: PlanTable, account: Account) -> AccountRecord:
    """``account`` as a value that outlives its session."""
    limits = plans.limits_of(account.plan, account.limit_overrides)
    suspension = None if account.suspended_at is None else account.suspension_reason
    return AccountRecord(account.id, account.plan, limits, suspension, account.confirm_by)


def site_record(site: Site, learned: Gains | None = None) -> SiteRecord:
    """``site`` as a value that outlives its session.

    Args:
        learned: What changes the order of its results (:func:`read_gains`), where that matters.
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
    )


def with_settings(record: SiteRecord, stored: Mapping[str, Any], learned: Gains) -> SiteRecord:
    """A site as it would be searched with other search settings.

    Args:
        learned: What clicks would change.
    """
    return replace(record, settings=replace(read_settings(stored), learned=learned), rules=read_rules(stored))


def load_credentials(
    session: Session, plans: PlanTable, token_hash: str, credential_version: CredentialVersion | None
) -> Credentials | None:
    """The key with this token and its account, or ``None``.

    Args:
        credential_version: The account's version, read before this call; ``None`` when it is not known yet.
    """
    row = session.execute(
        select(Key, Account)
        .join(Account, Account.id == Key.account_id)
        .where(or_(Key.token_hash == token_hash, Key.previous_token_hash == token_hash))
    ).first()
    if row is None:
        return None
    key, account = row
    was_rotated = key.token_hash != token_hash
    usable_until = key.expires_at
    if was_rotated:
        limits = [moment for moment in (key.expires_at, key.previous_expires_at) if moment is not None]
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
    """Load an engine key's site and account and, unless it is the site's public one, the service key it was made for.

    ``None`` if any of them is gone. The arguments are as in :func:`load_credentials`.
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
    record.sites[site.id] = site_record(site, read_gains(session, site))
    settled = credential_version if credential_version is not None and credential_version.is_settled else None
    return Credentials(key, record, settled)


class CredentialCache:
    """Least recently used credentials by token hash, those of engine keys by what they were made for.

    Args:
        size: Most entries kept.
    """

    def __init__(self, size: int = 10_000):
        self._size = size
        self._entries: OrderedDict[str, Credentials] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, token_hash: str) -> Credentials | None:
        """Find what was kept for a token; to be used only if its version is still the account's."""
        with self._lock:
            entry = self._entries.get(token_hash)
            if entry is not None:
                self._entries.move_to_end(token_hash)
            return entry

    def keep(self, token_hash: str, credentials: Credentials | None) -> None:
        """Remember ``credentials`` if they were loaded under a settled version, else forget the token."""
        with self._lock:
            self._entries.pop(token_hash, None)
            if credentials is not None and credentials.credential_version is not None:
                self._entries[token_hash] = credentials
                while len(self._entries) > self._size:
                    self._entries.popitem(last=False)


@contextmanager
def credential_change(database: Database, counters: CounterStore, account_id: int) -> Iterator[Session]:
    """A writing transaction that changes what :class:`Credentials` holds of an account.

    Other processes are told around the commit: before, so that a crash in between leaves them reading the
    database rather than a stale cache, and after, so that they may cache again. Nothing is told when the block
    raises, since nothing was changed.

    Raises:
        CountersUnavailable: Other processes could not be told; nothing was changed, unless the message came
            after the commit (their caches then stay unused until the change is healed).
    """
    with ExitStack() as after_commit, database.write() as session:
        yield session
        session.flush()
        after_commit.enter_context(changed_credentials(counters, account_id))


@contextmanager
def changed_credentials(counters: CounterStore, account_id: int) -> Iterator[None]:
    """Put the commit of a change inside: other processes are told before and after it."""
    counters.begin_credential_change(account_id, now=now().timestamp())
    try:
        yield
    finally:
        counters.end_credential_change(account_id, now=now().timestamp())
