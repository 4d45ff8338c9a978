"""Tables for accounts: members, logins, identities, outgoing emails, and the audit log."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from sqlalchemy import JSON, Date, ForeignKey, Index, String, Text, false, text, true
from sqlalchemy.orm import Mapped, mapped_column, relationship

from app.models.base import Base, BigId


class Account(Base):
    """A customer. Sites, keys, and quotas belong to it. It has the name and email address of its first owner."""

    __tablename__ = "accounts"
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012 - ids are never reused

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    name: Mapped[str] = mapped_column(String(100))
    email: Mapped[str] = mapped_column(String(254))
    email_key: Mapped[str] = mapped_column(String(254), unique=True)
    """Email address, trimmed and case-folded for comparisons."""
    password_hash: Mapped[str] = mapped_column(String(255), default="")
    """Always empty, since members have passwords. During an upgrade, old processes still use the column."""
    plan: Mapped[str] = mapped_column(String(32))
    limit_overrides: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)
    """Maps limit names to numbers, or null for unlimited; other limits come from the plan."""
    created_at: Mapped[datetime]
    suspended_at: Mapped[datetime | None]
    """Time at which the operator suspended the account; ``NULL`` if not suspended."""
    suspension_reason: Mapped[str] = mapped_column(String(500), default="", server_default=text("''"))
    """Message shown to blocked users."""
    weekly_digest: Mapped[bool] = mapped_column(default=True, server_default=true())
    """Whether the owner receives the weekly digest of searches without results."""
    confirm_by: Mapped[datetime | None]
    """Deadline for confirming the owner's address, when keys stop working; ``NULL`` if confirmed or not required."""
    digest_week: Mapped[date | None] = mapped_column(Date)
    """Monday of the last week whose digest was processed, whether or not it was sent."""


class DepartureReason(Base):
    """A reason for deleting an account, stored anonymously."""

    __tablename__ = "departure_reasons"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    reason: Mapped[str] = mapped_column(String(2000))
    created_at: Mapped[datetime]


class Member(Base):
    """A person with a login. An email address belongs to at most one member of each account."""

    __tablename__ = "members"
    __table_args__ = (Index(None, "account_id"), {"sqlite_autoincrement": True})

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    account_id: Mapped[int] = mapped_column(BigId, ForeignKey("accounts.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(100))
    email: Mapped[str] = mapped_column(String(254))
    email_key: Mapped[str] = mapped_column(String(254), unique=True)
    """Email address, trimmed and case-folded for comparisons; or a unique placeholder, see ``shared_email_key``."""
    shared_email_key: Mapped[str | None] = mapped_column(String(254), index=True)
    """Email address, trimmed and case-folded, if a member of another account had it first. In this case, ``email_key``
    is a placeholder."""
    email_confirmed: Mapped[bool] = mapped_column(default=False, server_default=true())
    """Whether the member has proved ownership of the mailbox; true for members from before this was required."""
    email_set_by_key: Mapped[bool] = mapped_column("email_by_key", default=False, server_default=false())
    """Whether an API key set the address, so that access to the mailbox does not identify the member."""
    password_hash: Mapped[str] = mapped_column(String(255))
    role: Mapped[str] = mapped_column(String(16))
    """``owner``, ``editor``, or ``viewer``."""
    created_at: Mapped[datetime]
    codes_since: Mapped[datetime | None]
    """Time at which two-factor authentication was turned on; ``NULL`` if it is off."""
    codes_salt: Mapped[str | None] = mapped_column(String(32))
    """Salt from which, with the server's secret, the authenticator app's secret is derived."""
    codes_step: Mapped[int] = mapped_column(default=0, server_default="0")
    """Time step of the last accepted code. Codes of this step or earlier ones are rejected, to prevent replays."""
    recovery_hashes: Mapped[list[str]] = mapped_column(JSON, default=list, server_default=text("'[]'"))
    """Hashes of the unused recovery codes."""
    new_codes_salt: Mapped[str | None] = mapped_column(String(32))
    """Salt of an authenticator app whose setup is not yet complete."""
    new_codes_until: Mapped[datetime | None]
    """Deadline for completing the authenticator app's setup."""
    operator_since: Mapped[datetime | None]
    """Time at which a command named the member an operator of the service; ``NULL`` for all other members."""

    account: Mapped[Account] = relationship(lazy="joined", innerjoin=True)

    @property
    def compared_email(self) -> str:
        """Email address, trimmed and case-folded for comparisons."""
        return self.shared_email_key or self.email_key


class Identity(Base):
    """A link between a member and an OpenID Connect identity, which may be linked to several members."""

    __tablename__ = "identities"
    __table_args__ = (Index(None, "issuer", "subject"), {"sqlite_with_rowid": False})

    member_id: Mapped[int] = mapped_column(
        BigId, ForeignKey("members.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    issuer: Mapped[str] = mapped_column(String(255), primary_key=True)
    subject: Mapped[str] = mapped_column(String(255))
    """The provider's permanent identifier for the person, since email addresses may be reassigned."""
    created_at: Mapped[datetime]

    member: Mapped[Member] = relationship(lazy="joined", innerjoin=True)

    @property
    def id(self) -> int:
        """Member ID, which the audit log uses as this object's ID."""
        return self.member_id


class Session(Base):
    """A login session of a member. Deleting the row ends the session."""

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
    """Network from which the member logged in."""
    opened_with: Mapped[str] = mapped_column(String(16), default="", server_default=text("''"))
    """Proof of identity at the login: ``password``, ``code``, ``recovery_code``, or ``provider``; empty for sessions
    from before this was recorded."""
    code_at: Mapped[datetime | None]
    """Time of the last one-time or recovery code that was given in this session; ``NULL`` if none was."""

    member: Mapped[Member] = relationship(lazy="joined", innerjoin=True)


class EmailChange(Base):
    """A change of a member's email address that can still be undone."""

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
    """Previous address, which undoing the change restores."""
    email_key: Mapped[str] = mapped_column(String(254))
    by_key: Mapped[bool]
    """Whether an API key made the change, which does not require the password."""
    was_confirmed: Mapped[bool] = mapped_column(default=True, server_default=true())
    """Whether the member had confirmed the previous address. If so, it stays reserved until the change is final."""
    expires_at: Mapped[datetime]


class EmailChangeLink(Base):
    """A link that undoes an email change. Each email about the change contains a new link."""

    __tablename__ = "email_change_links"
    __table_args__ = (Index(None, "change_id"),)

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    change_id: Mapped[int] = mapped_column(BigId, ForeignKey("email_changes.id", ondelete="CASCADE"))


class AuditEntry(Base):
    """One change to one object of an account. It includes the object's name, to stay readable after deletion."""

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
    """Email address of the member, or the key's name and the visible parts of its token."""
    address: Mapped[str | None] = mapped_column(String(64))
    """Client's IP address (for IPv6, its network); ``NULL`` if the change was not made by a request."""
    action: Mapped[str] = mapped_column(String(16))
    """``created``, ``changed``, ``deleted``, ``restored``, ``purged``, or ``logged_in``."""
    kind: Mapped[str] = mapped_column(String(24))
    """Type of object, such as ``site`` or ``search_settings``; ``app.services.audit_log.audited`` lists all."""
    object_id: Mapped[str] = mapped_column(String(32))
    object_name: Mapped[str] = mapped_column(String(300))
    site_id: Mapped[int | None] = mapped_column(BigId)
    """The object itself if it is a site, otherwise the site it belongs to. The site may be deleted."""
    changes: Mapped[list[dict[str, Any]]] = mapped_column(JSON)
    """Changed fields. Each has ``field``, and may have ``before`` and ``after``, or ``added`` and ``removed``."""
    state: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    """Complete search settings before the change, as stored; ``NULL`` for other objects and old entries."""


class QueuedEmail(Base):
    """An email that the mail server has not accepted yet. The row is deleted once the email is accepted or expires."""

    __tablename__ = "mails"
    __table_args__ = (Index(None, "account_id"), Index(None, "expires_at"))

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    account_id: Mapped[int | None] = mapped_column(BigId, ForeignKey("accounts.id", ondelete="CASCADE"))
    """The account that the email is about, with which it is deleted; ``NULL`` if none, or not known yet."""
    kind: Mapped[str] = mapped_column(String(32))
    """Type of email, which appears in the log. The text of some types is written only when they are sent."""
    recipient: Mapped[str] = mapped_column(String(254))
    subject: Mapped[str] = mapped_column(Text)
    text: Mapped[str] = mapped_column(Text)
    html: Mapped[str] = mapped_column(Text)
    unsubscribe_url: Mapped[str] = mapped_column(Text)
    """URL for one-click unsubscribing; empty for emails without a subscription."""
    message_key: Mapped[str] = mapped_column(String(32), unique=True)
    """Identifier that is the same in every attempt, so that duplicates can be recognized."""
    attempts: Mapped[int] = mapped_column(default=0)
    """Number of claims. A process may finish the email only while the number is the same as at its claim."""
    due_at: Mapped[datetime]
    """Earliest time of the next claim. Claiming the email sets this to the end of the lease."""
    expires_at: Mapped[datetime]
    """Time after which the email is no longer sent."""
    created_at: Mapped[datetime]


class PasswordReset(Base):
    """A single-use link for setting a member's new password."""

    __tablename__ = "password_resets"
    __table_args__ = (Index(None, "member_id"), Index(None, "expires_at"))

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    member_id: Mapped[int] = mapped_column(BigId, ForeignKey("members.id", ondelete="CASCADE"))
    expires_at: Mapped[datetime]


class QuotaWarning(Base):
    """A warning sent to an account's owner."""

    __tablename__ = "quota_warnings"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    account_id: Mapped[int] = mapped_column(
        BigId, ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    quota: Mapped[str] = mapped_column(String(16), primary_key=True)
    """``requests``, ``searches``, or ``documents``."""
    period: Mapped[str] = mapped_column(String(10), primary_key=True)
    """UTC day for searches, or end of the window in Unix seconds for requests; empty for documents."""
    allowed: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    """The account's limit at the time of the warning."""
    percent: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """Percentage of the limit that was reached: 80 or 100."""
    warned_at: Mapped[datetime]
