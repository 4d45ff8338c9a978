"""The meters of used limits, and the thresholds of their warnings."""

from __future__ import annotations

import pytest

from app.pages.plans import quota_meter, quota_meters
from app.plans import PlanLimits


@pytest.mark.parametrize(
    ("used", "most", "state", "note"),
    [
        (0, 100, "", "Resets."),
        (79, 100, "", "Resets."),
        (80, 100, "near", "Nearly used up. Resets."),
        (99, 100, "near", "Nearly used up. Resets."),
        (100, 100, "full", "Used up."),
        (101, 100, "full", "Used up."),
        (10**9, None, "", "Resets."),
        (0, 0, "full", "Used up."),
    ],
)
def test_meter_warns_near_its_limit(used: int, most: int | None, state: str, note: str) -> None:
    meter = quota_meter("Searches", used, most, full="Used up.", note="Resets.")

    assert (meter.state, meter.note) == (state, note)


def test_meters_of_sites_and_keys_never_warn() -> None:
    limits = PlanLimits(60, 1000, searches_per_day=10, documents=10, keys=2, sites=1)

    meters = quota_meters(limits, searches=10, asks=None, pages=9, sites=1, keys=2)

    assert [(meter.used, meter.limit, meter.state) for meter in meters] == [
        (10, 10, "full"), (9, 10, "near"), (1, 1, ""), (2, 2, ""),
    ]  # fmt: skip
