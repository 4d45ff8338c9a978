"""Keys, and the credentials of search servers."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import JSON, ForeignKey, Index, String, UniqueConstraint, false
from sqlalchemy.orm import Mapped, mapped_column, relationship

from app.clock import now
from app.models.base import Base, BigId
from app.models.sites import Site
from app.tokens import PREFIXES


class Key(Base):
    """An API key of a site. The tokens of private and search keys are not stored."""

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
    """Token of a public key, which is visible in web pages anyway; ``NULL`` for other and older keys."""
    previous_token_hash: Mapped[str | None] = mapped_column(String(64), unique=True)
    """Hash of the token before the last rotation, valid until ``previous_expires_at``."""
    previous_expires_at: Mapped[datetime | None]
    token_version: Mapped[int] = mapped_column(default=1)
    """Version number, incremented to revoke the engine keys issued for this key."""
    active: Mapped[bool] = mapped_column(default=True)
    scopes: Mapped[list[str] | None] = mapped_column(JSON(none_as_null=True))
    """Scopes of a private key; ``NULL`` for all, including future ones."""
    site_only: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether a private key is restricted to its own site."""
    allowed_origins: Mapped[list[str] | None] = mapped_column(JSON(none_as_null=True))
    """Origins of the pages that may use a public key; ``NULL`` for all."""
    exposed_at: Mapped[datetime | None]
    """Last time a web page sent this private key, to within an hour; ``NULL`` if never since the last rotation."""
    exposed_origin: Mapped[str | None] = mapped_column(String(300))
    exposure_dismissed: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether the owner has dismissed the notice about the exposed key."""
    seen_host: Mapped[str | None] = mapped_column(String(300))
    """Host of the page that last used a public key."""
    seen_at: Mapped[datetime | None]
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]

    site: Mapped[Site] = relationship(lazy="joined")

    @property
    def prefix(self) -> str:
        """Beginning of the key's token."""
        return PREFIXES[self.type]

    @property
    def status(self) -> str:
        """``expired``, ``disabled``, or ``active``."""
        if self.expires_at is not None and self.expires_at <= now():
            return "expired"
        return "active" if self.active else "disabled"

    @property
    def is_usable(self) -> bool:
        """Whether requests may use the key now."""
        return self.status == "active"


class EngineCredential(Base):
    """A credential issued by the engine, which is revoked with its holder."""

    __tablename__ = "engine_credentials"
    __table_args__ = (UniqueConstraint("engine", "holder", "index_name"), Index(None, "site_id"), Index(None, "key_id"))

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    site_id: Mapped[int] = mapped_column(BigId, ForeignKey("sites.id", ondelete="CASCADE"))
    key_id: Mapped[str | None] = mapped_column(ForeignKey("keys.id", ondelete="CASCADE"))
    """The API key that holds the credential; ``NULL`` for the site's public engine key."""
    engine: Mapped[str] = mapped_column(String(255))
    holder: Mapped[str] = mapped_column(String(64))
    index_name: Mapped[str] = mapped_column(String(64))
    reference: Mapped[str] = mapped_column(String(255))
    created_at: Mapped[datetime]
