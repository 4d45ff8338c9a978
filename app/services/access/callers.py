"""The caller of a request: its account, key or member, and role. This is the entrance to access control.

``credentials.py`` loads and caches keys with their account, ``rights.py`` compares roles and scopes, ``keys.py``
manages API keys, ``engine_keys.py`` issues keys for direct engine access, ``sessions.py`` handles logins, and
``key_sightings.py`` records where keys are used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.counters.values import CredentialVersion
from app.services.access.credentials import AccountRecord, KeyRecord, SiteRecord
from app.services.access.rights import EDITOR_RIGHTS, Rights, Role
from app.services.audit_log.actors import Actor

CallerKind = Literal["public", "search", "private", "session", "engine"]


@dataclass(frozen=True, slots=True)
class MemberRecord:
    """The member that a session belongs to, as of this request.

    Attributes:
        has_codes: Whether two-factor authentication is on.
        is_operator: Whether the member may use the operator area.
    """

    id: int
    email: str
    role: Role
    name: str
    has_codes: bool
    is_operator: bool


@dataclass(slots=True)
class Caller:
    """The caller of a request.

    Attributes:
        kind: The key's type, ``session``, or ``engine`` for an engine key, or a public key at the gateway.
        account: The account that the caller acts for.
        key: The API key, or the key that an engine key was issued for; ``None`` for sessions and public engine keys.
        site: The only site that an engine key can search.
        is_preview: Whether an engine key is for the preview of a search box, whose searches are free.
        member, csrf_token, session_hash: Set for sessions only.
        has_given_code: Whether the member gave a one-time or recovery code in this session. Two-factor authentication
            is a property of the member, so it does not prove that this session's holder passed it.
        credential_version: The account version under which these records were loaded; ``None`` if they were just read
            from SQL.
    """

    kind: CallerKind
    account: AccountRecord
    key: KeyRecord | None = None
    site: SiteRecord | None = None
    is_preview: bool = False
    member: MemberRecord | None = None
    csrf_token: str = ""
    session_hash: str = ""
    has_given_code: bool = False
    credential_version: CredentialVersion | None = None

    @property
    def member_id(self) -> int | None:
        """ID of the member; ``None`` for a key."""
        return None if self.member is None else self.member.id

    @property
    def is_operator(self) -> bool:
        """Whether the caller is a member whom a command has named an operator of the service."""
        return self.member is not None and self.member.is_operator

    @property
    def has_owner_rights(self) -> bool:
        """Whether no member role limits the caller: an owner, or any key."""
        return self.has_role(Role.OWNER)

    @property
    def has_editor_rights(self) -> bool:
        """Whether the caller may change sites and their contents: an owner, an editor, or any key."""
        return self.has_role(Role.EDITOR)

    def has_role(self, needed: Role) -> bool:
        """Whether a member's role covers ``needed``. Always true for keys, which have rights instead of a role."""
        return self.member is None or self.member.role.covers(needed)

    @property
    def rights(self) -> Rights | None:
        """Rights of the key or of the member's role; ``None`` for all rights, as owners have."""
        if self.key is not None:
            return self.key.rights
        return None if self.has_owner_rights else EDITOR_RIGHTS

    @property
    def only_site_id(self) -> int | None:
        """ID of the only site that a restricted private key may use; ``None`` for all other callers."""
        return self.key.site_id if self.key is not None and self.key.site_only else None


@dataclass(frozen=True, slots=True)
class Client:
    """The client that sent a request.

    Attributes:
        address: IP address, as the audit log shows it.
        key: Keyed hash of the address, which identifies the client in the counter store.
        user_agent: Value of the ``User-Agent`` header.
    """

    address: str
    key: str
    user_agent: str

    def member(self, email: str, member_id: int | None = None) -> Actor:
        """Return a member as the actor of the request. Omit the ID while the member is being created."""
        return Actor("member", email, None if member_id is None else str(member_id), self.address)
