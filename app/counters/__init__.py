"""What must be counted exactly, whoever asks and wherever: see :mod:`app.counters.base`."""

from app.counters.base import (
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
    UsageReservation,
    WindowRequest,
    WindowState,
)
from app.counters.metering import UNLIMITED
from app.counters.registry import create_counters

__all__ = [
    "UNLIMITED",
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
    "UsageReservation",
    "WindowRequest",
    "WindowState",
    "create_counters",
]
