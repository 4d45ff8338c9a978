"""x"""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, String, UniqueConstraint, false, text, true
from sqlalchemy.orm import Mapped, mapped_column, relationship

from app.models.base import Base, BigId


class Site(Base):
    """A customer's site: one search index, its own keys."""

    __tablename__ = "sites"
    __table_args__ = (Index(None, "account_id"), {"sqlite_autoincrement": True})

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    account_id: Mapped[int] = mapped_column(BigId, ForeignKey("accounts.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(100))
    url: Mapped[str] = mapped_column(String(2048))
    domain: Mapped[str] = mapped_column(String(255))
    domains: Mapped[list[str]] = mapped_column(JSON, default=list, server_default=text("'[]'"))
    """Further addresses on whose hosts sources may lie; pages then have the field ``domain``."""
    active: Mapped[bool] = mapped_column(default=True)
    deleted_at: Mapped[datetime | None]
    """Since when it is in the trash, where it is never active: see ``app.services.sites``."""
    was_active: Mapped[bool] = mapped_column(default=True, server_default=true())
    """Whether it was active when it was deleted."""
    agents: Mapped[bool] = mapped_column(default=False, server_default=text("false"))
    """Whether agents may search and read it; see ``app.compat.agents``."""
    description: Mapped[str] = mapped_column(String(500), default="", server_default=text("''"))
    """What it is about, for agents."""
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]

    document_count: Mapped[int] = mapped_column(default=0)
    field_kinds: Mapped[dict[str, list[str]]] = mapped_column(JSON, default=dict)
    """Further fields of the site's documents and the kinds seen in each."""
    search_settings: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)
    public_epoch: Mapped[int] = mapped_column(default=1)
    """Grows when every public engine key of the site must stop."""

    revision: Mapped[int] = mapped_column(BigId, default=0)
    """Grows with every change of the documents."""
    applied_revision: Mapped[int] = mapped_column(BigId, default=0)
    """Up to which revision the engine's index has the changes."""
    indexing_failed_at: Mapped[datetime | None]
    """When the last try to bring the index up to date failed, if none has succeeded since."""
    indexing_error: Mapped[str | None] = mapped_column(String(500))
    """Why it failed, for the operator: the engine's words may be in it."""
    engine: Mapped[str] = mapped_column(String(255))
    """Identity of the engine that holds the index: its kind, and its name if the URL gives one."""
    engine_index: Mapped[str] = mapped_column(String(64), default="", server_default=text("''"))
    """The index name at the engine."""
    index_generation: Mapped[int] = mapped_column(default=1)
    """Grows with every index that is built for the site."""
    index_tag: Mapped[str] = mapped_column(String(16), default=lambda: secrets.token_hex(5), server_default=text("''"))
    """Stands in the names of the site's indexes, so that no other installation's are taken for them."""
    vectors_revision: Mapped[int] = mapped_column(BigId, default=0, server_default=text("0"))
    """Up to which revision the documents have vectors."""
    vectors_model: Mapped[str] = mapped_column(String(255), default="", server_default=text("''"))
    """Identity of the model that makes them; empty for none."""
    vectors_wanted_until: Mapped[datetime | None]
    """Until when they are made for a preview, at a site whose settings do not wish for them."""
    rebuilding: Mapped[bool] = mapped_column(default=False)
    """Whether a second index is being built; deletions stay in ``documents`` until it has applied them."""

    @property
    def index(self) -> str:
        """The index name customers see; stays for the site's life."""
        return f"site_{self.id}"

    def index_name(self, generation: int) -> str:
        """The name at the engine of one generation of the site's index."""
        return f"site_{self.id}_{generation}_{self.index_tag}"


class ClickLessons(Base):
    """Lessons that a site learned from clicks: see ``app.services.learning``."""

    __tablename__ = "click_lessons"

    site_id: Mapped[int] = mapped_column(
        BigId, ForeignKey("sites.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    learned_day: Mapped[int | None]
    """The UTC day, counted from 1970-01-01; ``NULL``: it has yet to learn."""
    clicks_since: Mapped[datetime | None]
    """Clicks before were forgotten."""
    gains: Mapped[dict[str, dict[str, float]]] = mapped_column(JSON, default=dict)
    """Query in normal form to document id to the places that it may move up."""


class EngineTask(Base):
    """Something that must still be done at an engine, retried until it is: the outbox."""

    __tablename__ = "engine_tasks"
    __table_args__ = (Index(None, "due_at"),)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    engine: Mapped[str] = mapped_column(String(255))
    action: Mapped[str] = mapped_column(String(32))
    """``delete_index``, ``revoke_credential``, ``purge_site``, ``remove_source`` or ``release_source``."""
    subject: Mapped[str] = mapped_column(String(255))
    attempts: Mapped[int] = mapped_column(default=0)
    due_at: Mapped[datetime]
    created_at: Mapped[datetime]


class Key(Base):
    """An API key of a site. Of private and search keys the token itself is never stored."""

    __tablename__ = "keys"
    __table_args__ = (Index(None, "site_id"), Index(None, "account_id"))

    id: Mapped[str] = mapped_column(String(14), primary_key=True)
    account_id: Mapped[int] = mapped_column(BigId, ForeignKey("accounts.id", ondelete="CASCADE"))
    site_id: Mapped[int] = mapped_column(BigId, ForeignKey("sites.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(100))
    type: Mapped[str] = mapped_column(String(16))
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    last4: Mapped[str] = mapped_column(String(4))
    token: Mapped[str | None] = mapped_column(String(64))
    """A public key's token, which stands in web pages anyway; ``NULL`` for other keys, and those made before."""
    previous_token_hash: Mapped[str | None] = mapped_column(String(64), unique=True)
    """The token before the last rotation, good until ``previous_expires_at``."""
    previous_expires_at: Mapped[datetime | None]
    token_version: Mapped[int] = mapped_column(default=1)
    """Grows whenever engine keys made for this key must stop."""
    active: Mapped[bool] = mapped_column(default=True)
    scopes: Mapped[list[str] | None] = mapped_column(JSON(none_as_null=True))
    """What a private key is for; ``NULL`` for all there is, and will be."""
    site_only: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether a private key is for its own site alone."""
    allowed_origins: Mapped[list[str] | None] = mapped_column(JSON(none_as_null=True))
    """Origins of the pages that may use a public key; ``NULL`` for all."""
    exposed_at: Mapped[datetime | None]
    """When a web page last used a private key, within an hour; ``NULL`` since the last rotation."""
    exposed_origin: Mapped[str | None] = mapped_column(String(300))
    exposure_dismissed: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether its owner wants to hear no more of that."""
    seen_host: Mapped[str | None] = mapped_column(String(300))
    """Host of the page that used a public key last, and when."""
    seen_at: Mapped[datetime | None]
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]

    site: Mapped[Site] = relationship(lazy="joined")


class EngineCredential(Base):
    """A key of the engine's own that was handed out and must be ended when its holder stops."""

    __tablename__ = "engine_credentials"
    __table_args__ = (UniqueConstraint("engine", "holder", "index_name"), Index(None, "site_id"), Index(None, "key_id"))

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    site_id: Mapped[int] = mapped_column(BigId, ForeignKey("sites.id", ondelete="CASCADE"))
    key_id: Mapped[str | None] = mapped_column(ForeignKey("keys.id", ondelete="CASCADE"))
    """The service key it belongs to; ``NULL`` for the site's public one."""
    engine: Mapped[str] = mapped_column(String(255))
    holder: Mapped[str] = mapped_column(String(64))
    index_name: Mapped[str] = mapped_column(String(64))
    reference: Mapped[str] = mapped_column(String(255))
    created_at: Mapped[datetime]
