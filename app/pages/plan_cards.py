"""Plans as cards: the price, the limits, and the way to get the plan."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

from app.feature_settings import fill_in
from app.pages.layout import contact_url
from app.plans import PlanLimits
from app.runtime import Runtime
from app.services.access.callers import Caller
from app.web.auth import MANAGING
from app.wording import counted

_CURRENCY = r"(?:[€$£¥₹₽₩₺₴₫฿₱]|[A-Z]{3}\b|kr\b|zł|Kč|Fr\b\.?)"
_NUMBER = r"\d+(?:[.,’' \u00a0\u202f]\d+)*"
_AMOUNT = re.compile(rf"[A-Z]{{0,3}}{_CURRENCY}\s?{_NUMBER}|{_NUMBER}\s?{_CURRENCY}")
_MAX_LARGE_LENGTH = 12
"""Maximum length of a price without a currency, such as `0` or `Free`, that is shown in large type."""
_TICKS = (
    ("searches_per_day", "search", " a day"),
    ("documents", "page", ""),
    ("sites", "site", ""),
    ("keys", "API key", ""),
    ("requests_per_minute", "request", " a minute"),
)
_ASKS_TICK = ("asks_per_day", "AI question", " a day")


UPGRADE = "Upgrade"
"""Text of the button that leads to the operator's payment page."""


class Price(NamedTuple):
    """A price in two sizes: ``amount`` is large, and the text before and after it is small."""

    before: str
    amount: str
    after: str


@dataclass(frozen=True, slots=True)
class Action:
    """The button of a card.

    Attributes:
        label: The button's accessible name, if its text does not name the plan; otherwise empty.
    """

    text: str
    url: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class PlanCard:
    """A plan as a customer sees it.

    Attributes:
        price: ``None`` if the operator has not set a price.
        ticks: What the plan allows.
        is_current: Whether it is the account's plan.
        action: The way to get the plan; ``None`` if the caller cannot choose it.
    """

    name: str
    price: Price | None
    description: str
    ticks: tuple[str, ...]
    is_recommended: bool
    is_current: bool
    action: Action | None


def make_cards(runtime: Runtime, caller: Caller | None) -> list[PlanCard]:
    """Return the cards of all plans, in the order of the plans file.

    Args:
        caller: The person who reads the page, or ``None`` for a visitor.
    """
    current = caller.account.plan if caller is not None and MANAGING.allows(caller) else ""
    return [
        PlanCard(
            name=plan_title(name),
            price=_price(runtime, name),
            description=runtime.plans.offers[name].description,
            ticks=tuple(_tick(limits, *tick) for tick in (*_TICKS, *_asks_tick(runtime, limits))),
            is_recommended=runtime.plans.offers[name].recommended,
            is_current=name == current,
            action=_action(runtime, caller, name),
        )
        for name, limits in runtime.plans.items()
    ]


def plan_title(name: str) -> str:
    """Return a plan's name as customers see it: ``pro`` becomes ``Pro``."""
    return name[:1].upper() + name[1:]


def split_price(price: str) -> Price:
    """Split a price for display: ``from 19 € a month`` becomes ``from``, ``19 €``, and ``a month``."""
    if match := _AMOUNT.search(price):
        return Price(price[: match.start()].strip(), match[0], price[match.end() :].strip())
    return Price("", price, "") if len(price) <= _MAX_LARGE_LENGTH else Price("", "", price)


def _price(runtime: Runtime, name: str) -> Price | None:
    if price := runtime.plans.offers[name].price:
        return split_price(price)
    return Price("", "", "Free") if _is_open(runtime, name) else None


def _is_open(runtime: Runtime, name: str) -> bool:
    """Whether anyone gets this plan by registering."""
    return runtime.settings.registration and name == runtime.settings.default_plan


def _asks_tick(runtime: Runtime, limits: PlanLimits) -> tuple[tuple[str, str, str], ...]:
    """Return the tick of questions if a language model can answer them."""
    return () if runtime.language_model is None or limits.asks_per_day == 0 else (_ASKS_TICK,)


def _tick(limits: PlanLimits, limit: str, noun: str, period: str) -> str:
    value: int | None = getattr(limits, limit)
    if value is None:
        return f"Unlimited {counted(2, noun).partition(' ')[2]}"
    return counted(value, noun) + period


def _action(runtime: Runtime, caller: Caller | None, name: str) -> Action | None:
    """Return the button of a plan. Only owners can change the plan, because a plan costs money."""
    settings = runtime.settings
    if caller is None:
        can_buy = settings.registration and settings.upgrade_url and runtime.plans.offers[name].price
        if can_buy or _is_open(runtime, name):
            return Action("Create an account", "/register")
        return _ask(settings.operator_contact, name)
    names = list(runtime.plans)
    is_later = names.index(name) > names.index(caller.account.plan)
    if caller.member is None or not caller.has_owner_rights or not is_later:
        return None
    if settings.upgrade_url:
        url = fill_in(settings.upgrade_url, account_id=caller.account.id, plan=name)
        return Action(UPGRADE, url, f"Upgrade to {plan_title(name)}")
    return _ask(settings.operator_contact, name)


def _ask(contact: str, name: str) -> Action | None:
    url = contact_url(contact)
    if url.startswith("mailto:"):
        url += f"?subject={quote(f'Plan {plan_title(name)}')}"
    return Action("Ask us", url, f"Ask us about {plan_title(name)}") if url else None
