"""The table of plans: the shipped table and an operator's replacement."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from app.config import UNLIMITED, ConfigurationError
from app.plans import SHIPPED_PLANS, PlanLimits, PlanOffer, PlanTable


class TestPlansFile:
    """One file contains the table, and an operator can replace it."""

    def test_shipped_plans_have_the_expected_limits(self) -> None:
        plans = PlanTable()

        assert plans["free"] == PlanLimits(60, 10_000, 100, 1_000, 2, 1)
        assert plans["starter"] == PlanLimits(300, 100_000, 1_000, 10_000, 5, 3, 20)
        assert plans["pro"] == PlanLimits(1_200, 1_000_000, 10_000, 100_000, 10, 10, 200)
        assert plans["business"] == PlanLimits(3_000, None, None, None, None, None, None)
        assert plans["enterprise"] == PlanLimits(6_000, None, None, None, None, None, None)
        assert len(plans) == 5

    def test_operators_plans_file_replaces_the_shipped_plans(self, tmp_path: Path) -> None:
        file = tmp_path / "plans.toml"
        file.write_text(SHIPPED_PLANS.read_text().replace("[free]", "[hobby]"))

        assert "hobby" in PlanTable(file)
        assert "free" not in PlanTable(file)

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("keys = 2\n", ""),
            ("keys = 2", "keyz = 2"),
            ("keys = 2", "keys = -1"),
            ("keys = 2", "keys = 1.5"),
            ("keys = 2", "keys = true"),
            ("keys = 2", 'keys = "many"'),
            ("keys = 2", f"keys = {UNLIMITED}"),
            ("keys = 2", "keys = 2\nprice = 19"),
            ("keys = 2", 'keys = 2\nprice = "19\\n20"'),
            ("keys = 2", f'keys = 2\ndescription = "{"x" * 301}"'),
            ("keys = 2", 'price = "19 €"'),
            ("keys = 2", 'keys = 2\nrecommended = "yes"'),
            ("keys = 2", "keys = 2\nrecommended = 1"),
            ("[free]", "[free"),
        ],
    )
    def test_invalid_plans_file_raises_configuration_error(self, tmp_path: Path, old: str, new: str) -> None:
        file = tmp_path / "plans.toml"
        file.write_text(SHIPPED_PLANS.read_text().replace(old, new, 1))

        with pytest.raises(ConfigurationError):
            PlanTable(file)

    def test_plans_may_have_a_price_and_a_description(self, tmp_path: Path) -> None:
        file = tmp_path / "plans.toml"
        file.write_text(
            SHIPPED_PLANS.read_text().replace("keys = 2", 'keys = 2\nprice = "19 €"\ndescription = " Small "')
        )
        plans = PlanTable(file)

        assert plans.offers["free"] == PlanOffer("19 €", "Small")
        assert plans.offers["pro"] == PlanOffer()
        assert plans["free"] == PlanTable()["free"]

    def test_one_plan_may_be_recommended(self, tmp_path: Path) -> None:
        file = tmp_path / "plans.toml"
        file.write_text(SHIPPED_PLANS.read_text().replace("[pro]", "[pro]\nrecommended = true"))

        assert [name for name, offer in PlanTable(file).offers.items() if offer.recommended] == ["pro"]

    def test_second_recommended_plan_raises_configuration_error(self, tmp_path: Path) -> None:
        file = tmp_path / "plans.toml"
        text = SHIPPED_PLANS.read_text()
        file.write_text(re.sub(r"\[(starter|pro)\]", r"[\1]\nrecommended = true", text))

        with pytest.raises(ConfigurationError, match="more than one plan: starter, pro"):
            PlanTable(file)

    def test_empty_plans_file_raises_configuration_error(self, tmp_path: Path) -> None:
        file = tmp_path / "plans.toml"
        file.write_text("")

        with pytest.raises(ConfigurationError):
            PlanTable(file)
