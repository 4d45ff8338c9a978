"""The database tables, without queries."""

from app.models.accounts import (
    Account,
    AuditEntry,
    DepartureReason,
    EmailChange,
    EmailChangeLink,
    Identity,
    Member,
    PasswordReset,
    QueuedEmail,
    QuotaWarning,
    Session,
)
from app.models.asks import Ask
from app.models.base import Base
from app.models.clicks import ClickAnchorDay, ClickDay, ClickLessons, SearchClick
from app.models.events import (
    EventJournal,
    EventRemoval,
    IgnoredQuery,
    OriginDay,
    QueryDay,
    QueryVisit,
    SearchEvent,
    SiteDay,
    UsageDay,
    UsageMonth,
    VisitorErasure,
    VisitorKey,
)
from app.models.invitations import Invitation
from app.models.keys import EngineCredential, Key
from app.models.sites import API_SOURCE, DocumentVector, EngineTask, Site, StoredDocument
from app.models.sources import CrawlHost, RunPage, Source, SourcePage, SourceRun
from app.models.syncs import Sync
from app.models.webhooks import Webhook, WebhookDelivery

__all__ = [
    "API_SOURCE",
    "Account",
    "Ask",
    "AuditEntry",
    "Base",
    "ClickAnchorDay",
    "ClickDay",
    "ClickLessons",
    "CrawlHost",
    "DepartureReason",
    "DocumentVector",
    "EmailChange",
    "EmailChangeLink",
    "EngineCredential",
    "EngineTask",
    "EventJournal",
    "EventRemoval",
    "Identity",
    "IgnoredQuery",
    "Invitation",
    "Key",
    "Member",
    "OriginDay",
    "PasswordReset",
    "QueryDay",
    "QueryVisit",
    "QueuedEmail",
    "QuotaWarning",
    "RunPage",
    "SearchClick",
    "SearchEvent",
    "Session",
    "Site",
    "SiteDay",
    "Source",
    "SourcePage",
    "SourceRun",
    "StoredDocument",
    "Sync",
    "UsageDay",
    "UsageMonth",
    "VisitorErasure",
    "VisitorKey",
    "Webhook",
    "WebhookDelivery",
]
