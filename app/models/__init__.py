"""The tables, without queries."""

from app.models.accounts import Account, DepartureReason, Session
from app.models.base import Base
from app.models.documents import API_SOURCE, StoredDocument, Sync
from app.models.events import (
    ClickDay,
    EventJournal,
    EventRemoval,
    QueryDay,
    QueryVisit,
    QueryWindow,
    ScopeDay,
    ScopeWindow,
    SearchClick,
    SearchEvent,
    WindowStart,
)
from app.models.inbox import IgnoredQuery
from app.models.keys import EngineCredential, Key
from app.models.mail import Mail, PasswordReset, QuotaWarning
from app.models.sites import EngineTask, Site
from app.models.sources import CrawlHost, RunPage, Source, SourcePage, SourceRun
from app.models.usage import UsageDay

__all__ = [
    "API_SOURCE",
    "Account",
    "Base",
    "ClickDay",
    "CrawlHost",
    "DepartureReason",
    "EngineCredential",
    "EngineTask",
    "EventJournal",
    "EventRemoval",
    "IgnoredQuery",
    "Key",
    "Mail",
    "PasswordReset",
    "QueryDay",
    "QueryVisit",
    "QueryWindow",
    "QuotaWarning",
    "RunPage",
    "ScopeDay",
    "ScopeWindow",
    "SearchClick",
    "SearchEvent",
    "Session",
    "Site",
    "Source",
    "SourcePage",
    "SourceRun",
    "StoredDocument",
    "Sync",
    "UsageDay",
    "WindowStart",
]
