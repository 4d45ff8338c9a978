"""API keys and the engine credentials made for them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import JSON, ForeignKey, Index, String, UniqueConstraint, false
from sqlalchemy.orm import Mapped, mapped_column, relationship

from app.models.base import Base, BigId
from app.models.sites import Site


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
