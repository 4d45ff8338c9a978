"""Roles of members."""

from __future__ import annotations

from enum import StrEnum


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
