"""Callers, and where their requests come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.counters.base import CredentialVersion
from app.services.access.credentials import AccountRecord, KeyRecord, SiteRecord
from app.services.access.rights import EDITOR_RIGHTS, Rights, Role
from app.services.audit_log.actors import Actor

CallerKind = Literal["public", "search", "private", "session", "engine"]


@dataclass(frozen=True, slots=True)
class MemberRecord:
    """The member whose session it is, as they are with this request."""

    id: int
    email: str
    role: Role


@dataclass(slots=True)
class Caller:
    """The caller of a request.

    Attributes:
        kind: The key's type, ``session``, or ``engine`` for an engine key at the gateway.
        account: Whom they act for.
        key: The key, or the one an engine key belongs to; none for a session and a site's public engine key.
        site: The one site an engine key searches.
        member, csrf_token, session_hash: The session's, unless it is a key.
        credential_version: The account's, under which all this was loaded; ``None`` if it was read just now.
    """

    kind: CallerKind
    account: AccountRecord
    key: KeyRecord | None = None
    site: SiteRecord | None = None
    member: MemberRecord | None = None
    csrf_token: str = ""
    session_hash: str = ""
    credential_version: CredentialVersion | None = None

    @property
    def member_id(self) -> int | None:
        """The member's id; ``None`` for a key."""
        return None if self.member is None else self.member.id

    @property
    def is_owner(self) -> bool:
        """Tell whether no role limits what they may do."""
        return self.has_role(Role.OWNER)

    @property
    def is_editor(self) -> bool:
        """Tell whether they may change sites and what is in them."""
        return self.has_role(Role.EDITOR)

    def has_role(self, needed: Role) -> bool:
        """Tell whether a member's role covers ``needed``. A key has none: what it may do, its kind decides."""
        return self.member is None or self.member.role.covers(needed)

    @property
    def rights(self) -> Rights | None:
        """Rights of the caller's key, or of their role; ``None`` for all, as an owner may."""
        if self.key is not None:
            return self.key.rights
        return None if self.is_owner else EDITOR_RIGHTS

    @property
    def only_site_id(self) -> int | None:
        """The site of a private key that is for its own site alone; ``None`` for all other callers."""
        return self.key.site_id if self.key is not None and self.key.site_only else None


@dataclass(frozen=True, slots=True)
class Client:
    """The client that a request comes from.

    Attributes:
        address: The visitor's address, as the audit log shows it.
        key: What stands for the address in the counter store.
        user_agent: What the client calls itself.
    """

    address: str
    key: str
    user_agent: str

    def member(self, email: str, member_id: int | None = None) -> Actor:
        """A member as the request's actor; without an id while they are being made."""
        return Actor("member", email, None if member_id is None else str(member_id), self.address)
