"""The tables, without queries."""

from app.models.accounts import Account, DepartureReason
from app.models.audit_log import AuditEntry
from app.models.base import Base
from app.models.documents import API_SOURCE, DocumentVector, StoredDocument, Sync
from app.models.events import (
    ClickAnchorDay,
    ClickDay,
    EventJournal,
    EventRemoval,
    OriginDay,
    QueryDay,
    QueryVisit,
    SearchClick,
    SearchEvent,
    SiteDay,
    VisitorErasure,
    VisitorKey,
)
from app.models.inbox import IgnoredQuery
from app.models.keys import EngineCredential, Key
from app.models.mail import Mail, PasswordReset, QuotaWarning
from app.models.members import EmailChange, EmailChangeLink, Identity, Invitation, Member, Session
from app.models.sites import ClickLessons, EngineTask, Site
from app.models.sources import CrawlHost, RunPage, Source, SourcePage, SourceRun
from app.models.usage import UsageDay
from app.models.webhooks import Webhook, WebhookDelivery

__all__ = [
    "API_SOURCE",
    "Account",
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
    "Mail",
    "Member",
    "OriginDay",
    "PasswordReset",
    "QueryDay",
    "QueryVisit",
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
    "VisitorErasure",
    "VisitorKey",
    "Webhook",
    "WebhookDelivery",
]
