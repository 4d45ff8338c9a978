"""``capacity`` computes what docs/scaling.md shows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from app.commands.capacity import capacity

SCALING = Path(__file__).parents[2] / "docs" / "scaling.md"
ROWS = re.findall(r"^\| ([\d,]+) \| ([\d,.]+) \| ([\d,.]+) \| ([\d.]+) GB \| ", SCALING.read_text(), re.MULTILINE)


def computed(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(capacity, ["--cores", "2", "--json", *arguments])
    assert result.exit_code == 0, result.output
    values: dict[str, Any] = json.loads(result.output)
    return values


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_documented_table_matches_the_output_of_the_command(row: tuple[str, ...]) -> None:
    sites, searches, cores, memory = (float(cell.replace(",", "")) for cell in row)

    values = computed("--sites", str(int(sites)))

    assert values["searches_per_second"] == pytest.approx(searches, rel=0.04)
    assert values["cores"] == pytest.approx(cores, rel=0.25 if cores < 1 else 0.02)
    assert values["memory_bytes"] / 1e9 == pytest.approx(memory, abs=0.06)


def test_table_has_rows() -> None:
    assert len(ROWS) == 3


def test_more_searches_need_more_cores_and_api_searches_fewer() -> None:
    usual = computed()
    busy, plain = computed("--searches-per-day", "400"), computed("--keystrokes", "0")
    assert busy["cores"] > 1.5 * usual["cores"]
    assert plain["cores"] < usual["cores"] / 2
    assert plain["redis_cores"] < busy["redis_cores"]


def test_text_names_machines_and_servers() -> None:
    result = CliRunner().invoke(capacity, ["--sites", "10000", "--cores", "2"])
    assert "8.3 cores: 5 machines with 2 cores each" in result.output
    assert "Typesense: 42.0 GB of memory, 16.0 GB on disk" in result.output


def test_impossible_load_is_rejected() -> None:
    assert CliRunner().invoke(capacity, ["--sites", "0"]).exit_code == 2
