"""The tables, without queries."""

from app.models.accounts import Account, DepartureReason, Session
from app.models.base import Base
from app.models.documents import StoredDocument
from app.models.events import (
    EventJournal,
    EventRemoval,
    QueryDay,
    QueryWindow,
    ScopeDay,
    ScopeWindow,
    SearchEvent,
    WindowStart,
)
from app.models.keys import EngineCredential, Key
from app.models.sites import EngineTask, Site
from app.models.usage import UsageDay

__all__ = [
    "Account",
    "Base",
    "DepartureReason",
    "EngineCredential",
    "EngineTask",
    "EventJournal",
    "EventRemoval",
    "Key",
    "QueryDay",
    "QueryWindow",
    "ScopeDay",
    "ScopeWindow",
    "SearchEvent",
    "Session",
    "Site",
    "StoredDocument",
    "UsageDay",
    "WindowStart",
]
