"""Tables of accounts: members, their logins and proofs of identity, invitations, and the audit log."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from sqlalchemy import JSON, Date, ForeignKey, Index, String, UniqueConstraint, false, text, true
from sqlalchemy.orm import Mapped, mapped_column, relationship

from app.models.base import Base, BigId


class Account(Base):
    """A customer. Sites, keys, and quotas belong to it. It has the name and e-mail address of its first owner."""

    __tablename__ = "accounts"
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012 - ids are never reused

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    name: Mapped[str] = mapped_column(String(100))
    email: Mapped[str] = mapped_column(String(254))
    email_key: Mapped[str] = mapped_column(String(254), unique=True)
    """The address trimmed and case-folded, for comparisons."""
    password_hash: Mapped[str] = mapped_column(String(255), default="")
    """Empty, because members have the passwords. During an upgrade, old processes still use the column."""
    plan: Mapped[str] = mapped_column(String(32))
    limit_overrides: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)
    """Limit name to a number, or null for unlimited; other limits follow the plan."""
    created_at: Mapped[datetime]
    suspended_at: Mapped[datetime | None]
    """Start of a suspension by the operator."""
    suspension_reason: Mapped[str] = mapped_column(String(500), default="", server_default=text("''"))
    """Message shown to blocked users."""
    weekly_digest: Mapped[bool] = mapped_column(default=True, server_default=true())
    """Whether its owner wants the weekly digest of searches without results."""
    confirm_by: Mapped[datetime | None]
    """Deadline for an owner to confirm their address, after which keys stop; ``NULL`` if confirmed or not required."""
    digest_week: Mapped[date | None] = mapped_column(Date)
    """Monday of the last week whose digest was handled, sent or not."""


class DepartureReason(Base):
    """A person's reason for deleting an account, stored without identity."""

    __tablename__ = "departure_reasons"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    reason: Mapped[str] = mapped_column(String(2000))
    created_at: Mapped[datetime]


class Member(Base):
    """A person with a login. An e-mail address belongs to at most one member of each account."""

    __tablename__ = "members"
    __table_args__ = (Index(None, "account_id"), {"sqlite_autoincrement": True})

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    account_id: Mapped[int] = mapped_column(BigId, ForeignKey("accounts.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(100))
    email: Mapped[str] = mapped_column(String(254))
    email_key: Mapped[str] = mapped_column(String(254), unique=True)
    """The address trimmed and case-folded, for comparisons; or a unique placeholder, see ``shared_email_key``."""
    shared_email_key: Mapped[str | None] = mapped_column(String(254), index=True)
    """The address trimmed and case-folded, if a member of another account had it first; then ``email_key`` is a
    placeholder."""
    email_confirmed: Mapped[bool] = mapped_column(default=False, server_default=true())
    """Whether the member has proved ownership of the mailbox. Members from before proofs were required count as
    confirmed."""
    email_by_key: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether an API key set the address. Then a proof of the mailbox does not identify the member."""
    password_hash: Mapped[str] = mapped_column(String(255))
    role: Mapped[str] = mapped_column(String(16))
    """``owner``, ``editor``, or ``viewer``."""
    created_at: Mapped[datetime]
    codes_since: Mapped[datetime | None]
    """When two-factor authentication was turned on; ``NULL`` if the password is enough."""
    codes_salt: Mapped[str | None] = mapped_column(String(32))
    """Salt from which, with the server's secret, the secret of the codes derives."""
    codes_step: Mapped[int] = mapped_column(default=0, server_default="0")
    """Time step of the last accepted code. Codes of this step and earlier ones are rejected."""
    recovery_hashes: Mapped[list[str]] = mapped_column(JSON, default=list, server_default=text("'[]'"))
    """Hashes of the unused recovery codes."""
    new_codes_salt: Mapped[str | None] = mapped_column(String(32))
    """Salt of an app whose setup is not completed."""
    new_codes_until: Mapped[datetime | None]
    """Deadline of that setup."""

    account: Mapped[Account] = relationship(lazy="joined", innerjoin=True)

    @property
    def compared_email(self) -> str:
        """The address in the form used for comparisons."""
        return self.shared_email_key or self.email_key


class Identity(Base):
    """A person at an OpenID Connect provider, linked to a member. One person may be linked to several members."""

    __tablename__ = "identities"
    __table_args__ = (Index(None, "issuer", "subject"), {"sqlite_with_rowid": False})

    member_id: Mapped[int] = mapped_column(
        BigId, ForeignKey("members.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    issuer: Mapped[str] = mapped_column(String(255), primary_key=True)
    subject: Mapped[str] = mapped_column(String(255))
    """The provider's permanent identifier of the person; an e-mail address may change hands."""
    created_at: Mapped[datetime]

    member: Mapped[Member] = relationship(lazy="joined", innerjoin=True)

    @property
    def id(self) -> int:
        """ID of the member, for the audit log."""
        return self.member_id


class Session(Base):
    """A member's login. The row is the session: deleting it ends it."""

    __tablename__ = "sessions"
    __table_args__ = (Index(None, "account_id"), Index(None, "member_id"), Index(None, "expires_at"))

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    account_id: Mapped[int] = mapped_column(BigId, ForeignKey("accounts.id", ondelete="CASCADE"))
    member_id: Mapped[int] = mapped_column(BigId, ForeignKey("members.id", ondelete="CASCADE"))
    csrf_token: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime]
    seen_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    browser: Mapped[str] = mapped_column(String(60), default="", server_default=text("''"))
    """Browser or program that logged in, such as ``Firefox on Windows``."""
    address: Mapped[str] = mapped_column(String(64), default="", server_default=text("''"))
    """Network that the login came from."""

    member: Mapped[Member] = relationship(lazy="joined", innerjoin=True)


class Invitation(Base):
    """An invitation to join an account. It ends when it is accepted, revoked, or expired."""

    __tablename__ = "invitations"
    __table_args__ = (UniqueConstraint("account_id", "email_key"), Index(None, "expires_at"))

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    """``inv_…``."""
    account_id: Mapped[int] = mapped_column(BigId, ForeignKey("accounts.id", ondelete="CASCADE"))
    email: Mapped[str] = mapped_column(String(254))
    email_key: Mapped[str] = mapped_column(String(254))
    role: Mapped[str] = mapped_column(String(16))
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    is_mailed: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether the link was sent only to the invited address, so that accepting it proves ownership of the mailbox."""
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class EmailChange(Base):
    """A member's former address, for as long as the change can be undone."""

    __tablename__ = "email_changes"
    __table_args__ = (
        Index(None, "member_id"),
        Index(None, "email_key"),
        Index(None, "expires_at"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    member_id: Mapped[int] = mapped_column(BigId, ForeignKey("members.id", ondelete="CASCADE"))
    email: Mapped[str] = mapped_column(String(254))
    """The address that undoing restores."""
    email_key: Mapped[str] = mapped_column(String(254))
    by_key: Mapped[bool]
    """Whether an API key made the change, without a proof of the password."""
    was_confirmed: Mapped[bool] = mapped_column(default=True, server_default=true())
    """Whether the member had confirmed the address. Only then is it reserved while the change can be undone."""
    expires_at: Mapped[datetime]


class EmailChangeLink(Base):
    """A link that undoes a change: one for each time that its mail was sent."""

    __tablename__ = "email_change_links"
    __table_args__ = (Index(None, "change_id"),)

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    change_id: Mapped[int] = mapped_column(BigId, ForeignKey("email_changes.id", ondelete="CASCADE"))


class AuditEntry(Base):
    """One change of one object of an account. It contains the object's name, to be readable after the object is
    deleted."""

    __tablename__ = "audit_entries"
    __table_args__ = (Index(None, "account_id", "id"), Index(None, "created_at"), {"sqlite_autoincrement": True})

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    account_id: Mapped[int] = mapped_column(BigId, ForeignKey("accounts.id", ondelete="CASCADE"))
    created_at: Mapped[datetime]
    actor_kind: Mapped[str] = mapped_column(String(16))
    """``member``, ``key``, ``operator``, or ``system``."""
    actor_id: Mapped[str | None] = mapped_column(String(32))
    """ID of the member or key."""
    actor_name: Mapped[str] = mapped_column(String(300))
    """Address of the member, or name and visible token parts of the key."""
    address: Mapped[str | None] = mapped_column(String(64))
    """IP address (for IPv6, the network) of the request; ``NULL`` without a request."""
    action: Mapped[str] = mapped_column(String(16))
    """``created``, ``changed``, ``deleted``, ``restored``, ``purged``, or ``logged_in``."""
    kind: Mapped[str] = mapped_column(String(24))
    """Kind of object: ``site``, ``search_settings``, ``key``, ``source``, ``member``, ``invitation``, or ``account``.
    """
    object_id: Mapped[str] = mapped_column(String(32))
    object_name: Mapped[str] = mapped_column(String(300))
    site_id: Mapped[int | None] = mapped_column(BigId)
    """The site that the object is or belongs to; it may be deleted."""
    changes: Mapped[list[dict[str, Any]]] = mapped_column(JSON)
    """Changed fields: ``field`` with ``before`` and ``after``, with ``added`` and ``removed``, or alone."""
    state: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    """Complete search settings before the change, as stored; ``NULL`` for other kinds and older changes."""
