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
    asks_per_day: int | None = 0

    def with_overrides(self, overrides: Mapping[str, Any]) -> PlanLimits:
        """Return these limits with an account's overrides applied."""
        values = {name: getattr(self, name) for name in LIMIT_NAMES}
        values.update({name: value for name, value in overrides.items() if name in values})
        return PlanLimits(**values)


@dataclass(frozen=True, slots=True)
class PlanOffer:
    """Additions to a plan's limits; empty if the plans file does not define them.

    Attributes:
        price, description: Texts for customers, such as a price of `19 € a month`.
        engine: Name of the search engine for new sites.
        recommended: Whether pages emphasize the plan; at most one plan is recommended.
    """

    price: str = ""
    description: str = ""
    engine: str = ""
    recommended: bool = False


OFFER_NAMES = tuple(f.name for f in fields(PlanOffer))
MAX_OFFER_LENGTH = 300
"""Maximum length of a plan's price, description, or engine name, in characters."""
LIMIT_NAMES = tuple(f.name for f in fields(PlanLimits))

QUOTA_REJECTIONS = Counter("search_quota_refusals_total", "What a limit of a plan rejected.", ["quota"])
for _name in LIMIT_NAMES:
    QUOTA_REJECTIONS.labels(_name)  # Export zeros from the start, so that the first rejection appears as an increase.


def limit_or_unlimited(limit: int | None) -> int:
    """Return a limit as an integer, as clients expect, even if it is unlimited."""
    return UNLIMITED if limit is None else min(limit, UNLIMITED)


def describe_quota(searches_per_day: int | None, used_today: int) -> dict[str, int | bool]:
    """Return an account's limit of daily searches and their use, as responses show them."""
    return {
        "daily_limit": limit_or_unlimited(searches_per_day),
        "used_today": used_today,
        "unlimited": searches_per_day is None,
    }


def per_month(limit: int | None) -> int | None:
    """Convert a daily limit to a limit for a month of 30 days."""
    return None if limit is None else limit * 30


class PlanTable(Mapping[str, PlanLimits]):
    """A mapping of plan names to limits, read from a TOML file.

    Raises:
        ConfigurationError: The file is missing or malformed, or lacks a limit.
    """

    def __init__(self, path: str | Path = SHIPPED_PLANS):
        tables = _read(Path(path))
        self._plans = {name: limits for name, (limits, _) in tables.items()}
        self.offers = {name: offer for name, (_, offer) in tables.items()}
        """Maps plan names to what they have besides limits."""

    def __getitem__(self, name: str) -> PlanLimits:
        return self._plans[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._plans)

    def __len__(self) -> int:
        return len(self._plans)

    def limits_of(self, plan: str, overrides: Mapping[str, Any]) -> PlanLimits:
        """Return the limits of an account on ``plan``.

        Raises:
            ConfigurationError: The file no longer defines the plan.
        """
        if plan not in self._plans:
            raise ConfigurationError(f"An account is on plan {plan!r}, which the plans file does not define.")
        return self._plans[plan].with_overrides(overrides)


def _read(path: Path) -> dict[str, tuple[PlanLimits, PlanOffer]]:
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"The plans file {path} cannot be read: {error}") from error
    plans: dict[str, tuple[PlanLimits, PlanOffer]] = {}
    for name, table in tables.items():
        # A file that was written before there were questions gives none.
        table = {"asks_per_day": 0, **table} if isinstance(table, dict) else table
        if not isinstance(table, dict) or set(table) - set(OFFER_NAMES) != set(LIMIT_NAMES):
            raise ConfigurationError(
                f"Plan {name!r} in {path} must define {', '.join(LIMIT_NAMES)}, and may define "
                f"{', '.join(OFFER_NAMES)}."
            )
        limits = {key: parse_limit(table[key], f"{name}.{key}") for key in LIMIT_NAMES}
        plans[name] = PlanLimits(**limits), _parse_offer(table, name)
    if not plans:
        raise ConfigurationError(f"The plans file {path} defines no plans.")
    if len(recommended := [name for name, (_, offer) in plans.items() if offer.recommended]) > 1:
        raise ConfigurationError(f"The plans file {path} recommends more than one plan: {', '.join(recommended)}.")
    return plans


def _parse_offer(table: Mapping[str, object], plan: str) -> PlanOffer:
    recommended = table.get("recommended", False)
    if not isinstance(recommended, bool):
        raise ConfigurationError(f"{plan}.recommended must be true or false.")
    texts = {
        key: _parse_text(table[key], f"{plan}.{key}") for key in ("price", "description", "engine") if key in table
    }
    return PlanOffer(**texts, recommended=recommended)


def _parse_text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value.isprintable() or len(value) > MAX_OFFER_LENGTH:
        raise ConfigurationError(f"{name} must be one line of at most {MAX_OFFER_LENGTH} characters.")
    return value.strip()


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
