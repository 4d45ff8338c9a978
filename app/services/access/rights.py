"""Roles of members, and rights of keys: which requests a caller may make."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.errors import ApiError, ErrorCode
from schemas.validation.keys import Scope


class Role(StrEnum):
    """A member's role. Each role includes the rights of the roles before it."""

    VIEWER = "viewer"
    """Reads the dashboard, analytics, and pages. Changes only their own profile."""
    EDITOR = "editor"
    """Changes sites, documents, settings, keys, sources, and the inbox."""
    OWNER = "owner"
    """Does everything, including managing members, reading the audit log, and deleting the account."""

    def covers(self, needed: Role) -> bool:
        """Whether this role includes the rights of ``needed``."""
        return _ORDER.index(self) >= _ORDER.index(needed)


_ORDER = list(Role)


@dataclass(frozen=True, slots=True)
class Rights:
    """Rights of a key, and the sites they apply to.

    Attributes:
        scopes: ``None`` for all scopes, including future ones.
        site_id: The only permitted site; ``None`` for all sites of the account.
    """

    scopes: frozenset[Scope] | None
    site_id: int | None

    def cover(self, needed: Rights) -> bool:
        """Whether these rights include all rights in ``needed``."""
        has_scopes = self.scopes is None or (needed.scopes is not None and needed.scopes <= self.scopes)
        return has_scopes and self.site_id in (None, needed.site_id)


EDITOR_RIGHTS = Rights(frozenset(Scope) - {Scope.ACCOUNT}, None)
"""Maximum rights of a key that an editor creates: all scopes except ``account``, which requires an owner."""


def rights_of(key_type: str, scopes: frozenset[Scope] | None, site_only: bool, site_id: int) -> Rights:
    """Return the rights of a key.

    Args:
        scopes, site_only: Restrictions of a private key.
        site_id: The site that the key belongs to.
    """
    if key_type == "private":
        return Rights(scopes, site_id if site_only else None)
    return Rights(frozenset({Scope.SEARCH}) if key_type == "search" else frozenset(), site_id)


def read_scopes(names: list[str] | None) -> frozenset[Scope] | None:
    """Convert the scope names stored in a key's row."""
    return None if names is None else frozenset(map(Scope, names))


def require_site(rights: Rights, site_id: int) -> None:
    """Reject access to another site by a key restricted to its own site.

    Raises:
        ApiError: 403.
    """
    if rights.site_id not in (None, site_id):
        raise other_site()


def other_site() -> ApiError:
    """Return the 403 for using a key outside the site that it is restricted to."""
    return ApiError(
        ErrorCode.INSUFFICIENT_PERMISSION,
        "The key is restricted to its own site; use a key of the other site or an unrestricted key.",
    )


def require_cover(held: Rights | None, needed: Rights, action: str) -> None:
    """Reject an action on a key that has more rights than the caller.

    Args:
        held: Rights of the calling key, or :data:`EDITOR_RIGHTS`; ``None`` for owners.
        action: The attempted action, such as ``create``.

    Raises:
        ApiError: 403 with the missing scopes.
    """
    if held is None or held.cover(needed):
        return
    if held is EDITOR_RIGHTS:
        raise ApiError(
            ErrorCode.INSUFFICIENT_PERMISSION,
            f"Only an owner can {action} a key with the scope `account`; choose other scopes.",
        )
    raise ApiError(
        ErrorCode.INSUFFICIENT_PERMISSION,
        f"A key cannot {action} a key that has more rights than itself: {_missing(held, needed)}.",
    )


def _missing(held: Rights, needed: Rights) -> str:
    if held.site_id is not None and held.site_id != needed.site_id:
        return "the calling key is restricted to its own site"
    if needed.scopes is None:
        return "the calling key does not have all scopes"
    return f"the calling key lacks {format_scopes(needed.scopes - (held.scopes or frozenset()))}"


def format_scopes(scopes: frozenset[Scope]) -> str:
    """Format scopes for an error message."""
    names = ", ".join(f"`{scope}`" for scope in Scope if scope in scopes)
    return f"the scope{'s' if len(scopes) > 1 else ''} {names}"
