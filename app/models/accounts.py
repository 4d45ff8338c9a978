"""x"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from sqlalchemy import JSON, Date, ForeignKey, Index, String, UniqueConstraint, false, text, true
from sqlalchemy.orm import Mapped, mapped_column, relationship

from app.models.base import Base, BigId


class Account(Base):
    """A customer. Sites, keys and quotas belong to it; its name and e-mail are those of its first owner."""

    __tablename__ = "accounts"
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012 - ids are never reused

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    name: Mapped[str] = mapped_column(String(100))
    email: Mapped[str] = mapped_column(String(254))
    email_key: Mapped[str] = mapped_column(String(254), unique=True)
    """The e-mail trimmed and case-folded: what is compared."""
    password_hash: Mapped[str] = mapped_column(String(255), default="")
    """Empty: members have the passwords. Processes of the version before still name it while they are replaced."""
    plan: Mapped[str] = mapped_column(String(32))
    limit_overrides: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)
    """Limit name to a number, or null for unlimited; what is absent follows the plan."""
    created_at: Mapped[datetime]
    suspended_at: Mapped[datetime | None]
    """Since when its operator keeps everybody from it."""
    suspension_reason: Mapped[str] = mapped_column(String(500), default="", server_default=text("''"))
    """What is told to whoever is kept from it."""
    weekly_digest: Mapped[bool] = mapped_column(default=True, server_default=true())
    """Whether its owner wants a mail each week about what found nothing."""
    confirm_by: Mapped[datetime | None]
    """When its keys stop unless an owner has confirmed their e-mail; ``NULL``: that is not asked, or done."""
    digest_week: Mapped[date | None] = mapped_column(Date)
    """The Monday of the last week whose digest was seen to, sent or not worth a mail."""


class DepartureReason(Base):
    """The reason why somebody deleted an account, kept without identity."""

    __tablename__ = "departure_reasons"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    reason: Mapped[str] = mapped_column(String(2000))
    created_at: Mapped[datetime]


class Member(Base):
    """A person with a login. An e-mail belongs to one member of each account."""

    __tablename__ = "members"
    __table_args__ = (Index(None, "account_id"), {"sqlite_autoincrement": True})

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    account_id: Mapped[int] = mapped_column(BigId, ForeignKey("accounts.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(100))
    email: Mapped[str] = mapped_column(String(254))
    email_key: Mapped[str] = mapped_column(String(254), unique=True)
    """The e-mail trimmed and case-folded: what is compared; or what stands in its place, see ``shared_email_key``."""
    shared_email_key: Mapped[str | None] = mapped_column(String(254), index=True)
    """The same, if a member of another account had the e-mail first; ``email_key`` is then no e-mail, but unique."""
    email_confirmed: Mapped[bool] = mapped_column(default=False, server_default=true())
    """Whether they have shown that the mailbox is theirs. Those of before this was asked count as confirmed."""
    email_by_key: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether an API key has set the e-mail: then a proof that the mailbox is somebody's does not make them known."""
    password_hash: Mapped[str] = mapped_column(String(255))
    role: Mapped[str] = mapped_column(String(16))
    """``owner``, ``editor`` or ``viewer``."""
    created_at: Mapped[datetime]
    codes_since: Mapped[datetime | None]
    """When one-time codes were switched on; ``NULL``: the password is enough."""
    codes_salt: Mapped[str | None] = mapped_column(String(32))
    """What the secret of the codes follows from, together with that of the server."""
    codes_step: Mapped[int] = mapped_column(default=0, server_default="0")
    """The time step of the last code that was accepted: none of it or before is accepted again."""
    recovery_hashes: Mapped[list[str]] = mapped_column(JSON, default=list, server_default=text("'[]'"))
    """Of the recovery codes that were not used."""
    new_codes_salt: Mapped[str | None] = mapped_column(String(32))
    """The same of an app that has not shown a code yet."""
    new_codes_until: Mapped[datetime | None]
    """Until when it may."""

    account: Mapped[Account] = relationship(lazy="joined", innerjoin=True)

    @property
    def compared_email(self) -> str:
        """The e-mail in the form in which it is compared."""
        return self.shared_email_key or self.email_key


class Identity(Base):
    """A person at an OpenID Connect provider, as the member that they are here; they may be several."""

    __tablename__ = "identities"
    __table_args__ = (Index(None, "issuer", "subject"), {"sqlite_with_rowid": False})

    member_id: Mapped[int] = mapped_column(
        BigId, ForeignKey("members.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    issuer: Mapped[str] = mapped_column(String(255), primary_key=True)
    subject: Mapped[str] = mapped_column(String(255))
    """What the provider calls the person, for ever; an e-mail may become somebody else's."""
    created_at: Mapped[datetime]

    member: Mapped[Member] = relationship(lazy="joined", innerjoin=True)

    @property
    def id(self) -> int:
        """The member's, as the audit log names it."""
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
    """What logged in, such as ``Firefox on Windows``."""
    address: Mapped[str] = mapped_column(String(64), default="", server_default=text("''"))
    """The network that it came from."""

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
    """Whether only the mail to the invited address has the link, so that accepting it proves the mailbox."""
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class EmailChange(Base):
    """An e-mail that a member had, for as long as the change can be undone."""

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
    """What undoing it gives back."""
    email_key: Mapped[str] = mapped_column(String(254))
    by_key: Mapped[bool]
    """Whether an API key made the change, so that nobody has shown that they know the password."""
    was_confirmed: Mapped[bool] = mapped_column(default=True, server_default=true())
    """Whether the member had confirmed the e-mail. Only then may nobody else take it while the change can be undone."""
    expires_at: Mapped[datetime]


class EmailChangeLink(Base):
    """A link that undoes a change: one for each time that its mail was sent."""

    __tablename__ = "email_change_links"
    __table_args__ = (Index(None, "change_id"),)

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    change_id: Mapped[int] = mapped_column(BigId, ForeignKey("email_changes.id", ondelete="CASCADE"))


class AuditEntry(Base):
    """One change of one thing of an account. It names the thing, so that it can be read when the thing is gone."""

    __tablename__ = "audit_entries"
    __table_args__ = (Index(None, "account_id", "id"), Index(None, "created_at"), {"sqlite_autoincrement": True})

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    account_id: Mapped[int] = mapped_column(BigId, ForeignKey("accounts.id", ondelete="CASCADE"))
    created_at: Mapped[datetime]
    actor_kind: Mapped[str] = mapped_column(String(16))
    """``member``, ``key``, ``operator`` or ``system``."""
    actor_id: Mapped[str | None] = mapped_column(String(32))
    """The member's or the key's id."""
    actor_name: Mapped[str] = mapped_column(String(300))
    """The member's e-mail, or the key's name and what is shown of its token."""
    address: Mapped[str | None] = mapped_column(String(64))
    """The IP address (of IPv6: the network) that the request came from; ``NULL`` without a request."""
    action: Mapped[str] = mapped_column(String(16))
    """``created``, ``changed``, ``deleted``, ``restored``, ``purged`` or ``logged_in``."""
    kind: Mapped[str] = mapped_column(String(24))
    """Of the thing: ``site``, ``search_settings``, ``key``, ``source``, ``member``, ``invitation`` or ``account``."""
    object_id: Mapped[str] = mapped_column(String(32))
    object_name: Mapped[str] = mapped_column(String(300))
    site_id: Mapped[int | None] = mapped_column(BigId)
    """The site that the thing is, or belongs to; it may be gone."""
    changes: Mapped[list[dict[str, Any]]] = mapped_column(JSON)
    """What changed of each field: ``field`` with ``before`` and ``after``, with ``added`` and ``removed``, or alone."""
    state: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    """Of search settings: all of them before the change, as they were stored; ``NULL`` once there are many newer."""
