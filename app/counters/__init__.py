"""What must be counted exactly, whoever asks and wherever: see :mod:`app.counters.base`."""

from app.counters.base import (
    CountersDamaged,
    CounterStore,
    CountersUnavailable,
    CredentialEpoch,
    DayUsage,
    HitOutcome,
    IdempotencyKey,
    Operation,
    ReportOutcome,
    ReportStatus,
    Reservation,
    UsageReservation,
    WindowHit,
    WindowState,
)
from app.counters.metering import UNLIMITED
from app.counters.registry import create_counters

__all__ = [
    "UNLIMITED",
    "CounterStore",
    "CountersDamaged",
    "CountersUnavailable",
    "CredentialEpoch",
    "DayUsage",
    "HitOutcome",
    "IdempotencyKey",
    "Operation",
    "ReportOutcome",
    "ReportStatus",
    "Reservation",
    "UsageReservation",
    "WindowHit",
    "WindowState",
    "create_counters",
]
