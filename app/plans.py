"""Plans and their limits: one table in one file, with overrides per account."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from prometheus_client import Counter

from app.config import UNLIMITED, ConfigurationError

SHIPPED_PLANS = Path(__file__).with_name("plans.toml")


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """Limits of an account; ``None`` means unlimited. Daily limits apply to UTC days."""

    requests_per_minute: int | None
    requests_per_day: int | None
    searches_per_day: int | None
    documents: int | None
    keys: int | None
    sites: int | None

    def with_overrides(self, overrides: Mapping[str, Any]) -> PlanLimits:
        """Return these limits with an account's overrides applied."""
        values = {name: getattr(self, name) for name in LIMIT_NAMES}
        values.update({name: value for name, value in overrides.items() if name in values})
        return PlanLimits(**values)


LIMIT_NAMES = tuple(f.name for f in fields(PlanLimits))

QUOTA_REFUSALS = Counter("search_quota_refusals_total", "What a limit of a plan refused.", ["quota"])
for _name in LIMIT_NAMES:
    QUOTA_REFUSALS.labels(_name)  # Export zeros from the start, so that the first refusal appears as an increase.


def limit_or_unlimited(limit: int | None) -> int:
    """Return a limit as an integer, as clients expect, even if it is unlimited."""
    return UNLIMITED if limit is None else min(limit, UNLIMITED)


def per_month(limit: int | None) -> int | None:
    """Convert a daily limit to a limit for a month of 30 days."""
    return None if limit is None else limit * 30


class PlanTable(Mapping[str, PlanLimits]):
    """A mapping of plan names to limits, read from a TOML file.

    Raises:
        ConfigurationError: The file is missing or malformed, or lacks a limit.
    """

    def __init__(self, path: str | Path = SHIPPED_PLANS):
        self._plans, self._engines = _read(Path(path))

    def __getitem__(self, name: str) -> PlanLimits:
        return self._plans[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._plans)

    def __len__(self) -> int:
        return len(self._plans)

    def engine_of(self, plan: str) -> str | None:
        """Return the name of the engine for new sites of this plan; ``None`` for any engine."""
        return self._engines.get(plan)

    def limits_of(self, plan: str, overrides: Mapping[str, Any]) -> PlanLimits:
        """Return the limits of an account on ``plan``.

        Raises:
            ConfigurationError: The file no longer defines the plan.
        """
        if plan not in self._plans:
            raise ConfigurationError(f"An account is on plan {plan!r}, which the plans file does not define.")
        return self._plans[plan].with_overrides(overrides)


def _read(path: Path) -> tuple[dict[str, PlanLimits], dict[str, str]]:
    """Return the limits of each plan, and the engine of each plan that names one."""
    try:
        tables = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"The plans file {path} cannot be read: {error}") from error
    plans: dict[str, PlanLimits] = {}
    engines: dict[str, str] = {}
    for name, table in tables.items():
        if not isinstance(table, dict) or set(table) - {"engine"} != set(LIMIT_NAMES):
            raise ConfigurationError(
                f"Plan {name!r} in {path} must define exactly: {', '.join(LIMIT_NAMES)}; and may define engine."
            )
        if "engine" in table:
            engines[name] = str(table.pop("engine"))
        plans[name] = PlanLimits(**{key: parse_limit(value, f"{name}.{key}") for key, value in table.items()})
    if not plans:
        raise ConfigurationError(f"The plans file {path} defines no plans.")
    return plans, engines


def parse_limit(value: object, name: str) -> int | None:
    """Parse a limit from a file or a command line: a nonnegative integer, or ``unlimited``.

    Raises:
        ConfigurationError: The value is neither.
    """
    if value == "unlimited":
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < UNLIMITED:
        raise ConfigurationError(f"{name} must be an integer from 0 to {UNLIMITED - 1}, or unlimited.")
    return value
