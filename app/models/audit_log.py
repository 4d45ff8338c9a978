"""The audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, BigId


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
