"""Exact counts across threads, processes, and machines: see :mod:`app.counters.base`."""

from app.counters.base import (
    AnswerLost,
    ConsumeOutcome,
    CountersDamaged,
    CounterStore,
    CountersUnavailable,
    CredentialVersion,
    DayUsage,
    IdempotencyKey,
    Intent,
    IntentRequest,
    Operation,
    ReportOutcome,
    ReportStatus,
    Reservation,
    UncountedSearch,
    UsageReservation,
    WindowRequest,
    WindowState,
)
from app.counters.metering import UNLIMITED
from app.counters.registry import create_counters

__all__ = [
    "UNLIMITED",
    "AnswerLost",
    "ConsumeOutcome",
    "CounterStore",
    "CountersDamaged",
    "CountersUnavailable",
    "CredentialVersion",
    "DayUsage",
    "IdempotencyKey",
    "Intent",
    "IntentRequest",
    "Operation",
    "ReportOutcome",
    "ReportStatus",
    "Reservation",
    "UncountedSearch",
    "UsageReservation",
    "WindowRequest",
    "WindowState",
    "create_counters",
]
