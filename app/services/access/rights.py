"""Roles of members, and rights of keys: which requests a caller may make."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.errors import ApiError, ErrorCode
from schemas.validation.keys import Scope


class Role(StrEnum):
    """A member's role; each may do what those before it may."""

    VIEWER = "viewer"
    """Reads: dashboard, analytics, pages. Changes nothing but the own profile."""
    EDITOR = "editor"
    """Changes sites, documents, settings, keys, sources, and the inbox."""
    OWNER = "owner"
    """Everything: members, the audit log, and the end of the account, too."""

    def covers(self, needed: Role) -> bool:
        """Tell whether this role may do what ``needed`` may."""
        return _ORDER.index(self) >= _ORDER.index(needed)


_ORDER = list(Role)


@dataclass(frozen=True, slots=True)
class Rights:
    """Rights of a key, and where it has them.

    Attributes:
        scopes: ``None`` for all there are, and those to come.
        site_id: The only site; ``None`` for all of the account.
    """

    scopes: frozenset[Scope] | None
    site_id: int | None

    def cover(self, other: Rights) -> bool:
        """Tell whether ``other`` is no more than this."""
        has_scopes = self.scopes is None or (other.scopes is not None and other.scopes <= self.scopes)
        return has_scopes and self.site_id in (None, other.site_id)


EDITOR_RIGHTS = Rights(frozenset(Scope) - {Scope.ACCOUNT}, None)
"""Rights of a key that an editor makes: not what only owners may."""


def rights_of(key_type: str, scopes: frozenset[Scope] | None, site_only: bool, site_id: int) -> Rights:
    """The rights of a key.

    Args:
        scopes, site_only: A private key's.
        site_id: The site it belongs to.
    """
    if key_type == "private":
        return Rights(scopes, site_id if site_only else None)
    return Rights(frozenset({Scope.SEARCH}) if key_type == "search" else frozenset(), site_id)


def read_scopes(names: list[str] | None) -> frozenset[Scope] | None:
    """Scopes as a key's row holds them."""
    return None if names is None else frozenset(map(Scope, names))


def require_site(held: Rights, site_id: int) -> None:
    """Refuse another site with a key that is for its own site only.

    Raises:
        ApiError: 403.
    """
    if held.site_id not in (None, site_id):
        raise other_site()


def other_site() -> ApiError:
    """The 403 for another site of the account with a key that is for its own site only."""
    return ApiError(
        ErrorCode.INSUFFICIENT_PERMISSION, "The key is for its own site only; use a key of that site, or one for all."
    )


def require_cover(held: Rights | None, wanted: Rights, what: str) -> None:
    """Refuse what a key with fewer rights does to one with more.

    Args:
        held: The rights of the key that asks, or :data:`EDITOR_RIGHTS`; ``None`` for owners.
        what: What it is about to do, such as ``create``.

    Raises:
        ApiError: 403, naming the scopes that are missing.
    """
    if held is None or held.cover(wanted):
        return
    if held is EDITOR_RIGHTS:
        raise ApiError(
            ErrorCode.INSUFFICIENT_PERMISSION,
            f"Only an owner can {what} a key with the scope `account`; choose the other scopes.",
        )
    raise ApiError(
        ErrorCode.INSUFFICIENT_PERMISSION,
        f"A key cannot {what} a key that may do more than itself: {_missing(held, wanted)}.",
    )


def _missing(held: Rights, wanted: Rights) -> str:
    if held.site_id is not None and held.site_id != wanted.site_id:
        return "the calling key is for its own site only"
    if wanted.scopes is None:
        return "the calling key does not have all scopes"
    return f"the calling key lacks {told_scopes(wanted.scopes - (held.scopes or frozenset()))}"


def told_scopes(scopes: frozenset[Scope]) -> str:
    """Scopes in a message."""
    names = ", ".join(f"`{scope}`" for scope in Scope if scope in scopes)
    return f"the scope{'s' if len(scopes) > 1 else ''} {names}"
