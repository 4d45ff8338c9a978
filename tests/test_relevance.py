"""The relevance benchmark fails when a row gets worse, and its floors match the documented figures."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.relevance import TOLERANCE, Floors, below_floors
from tests.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parent.parent
FLOORS: Floors = json.loads((ROOT / "benchmarks" / "relevance_floors.json").read_text())
HERE = {"MRR@10": 0.744, "Success@5": 0.845}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A set of two pages and a query whose first hit is the page judged relevant."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    pages = [{"id": id, "title": f"Title {id}", "content": f"the {id}", "url": f"/{id}"} for id in ("harbor", "museum")]
    with gzip.open(folder / "documents.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(page) + "\n" for page in pages)
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "harbor"}))
    (folder / "qrels.tsv").write_text("q\tharbor\t1\n")
    return tmp_path


def measure(data: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the benchmark as .ci/real_documents.py does."""
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.relevance", str(data), "--floors", str(data / "floors.json"), *options],
        cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_row_below_its_floor_fails_the_benchmark(data: Path) -> None:
    assert measure(data, "--renew").returncode == 0
    assert json.loads((data / "floors.json").read_text()) == {
        "tiny": {"MRR@10": 1 - TOLERANCE, "Success@5": 1 - TOLERANCE}
    }
    assert measure(data).returncode == 0

    (data / "tiny" / "qrels.tsv").write_text("q\tmuseum\t1\n")
    worse = measure(data)

    assert worse.returncode == 1
    assert "tiny: MRR@10 0.0000 is below its floor 0.9980" in worse.stdout


def test_missing_figures_and_missing_floors_are_reported() -> None:
    other = {"MRR@10": 0.5, "Success@5": 0.5}
    assert below_floors({"a": HERE}, {"a": HERE}, all_sets=True) == []
    assert below_floors({"a": HERE}, {"a": HERE, "b": other}, all_sets=False) == []
    assert below_floors({"a": HERE}, {"a": HERE, "b": other}, all_sets=True) == [
        "b: MRR@10 was not measured", "b: Success@5 was not measured"
    ]  # fmt: skip
    assert below_floors({"a": HERE}, {}, all_sets=True) == ["a: MRR@10 has no floor", "a: Success@5 has no floor"]
    assert below_floors({"a": other}, {"a": HERE}, all_sets=True) == [
        "a: MRR@10 0.5000 is below its floor 0.7440", "a: Success@5 0.5000 is below its floor 0.8450"
    ]  # fmt: skip


def test_floors_match_the_documented_figures() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    names = {", typo": " typo", ", prefix": " prefix", "": ""}
    told = re.findall(r"^\| ([a-z-]+)(, [a-z ]+|) \| \*\*(\.\d+) / (\.\d+)\*\* \|", page, re.MULTILINE)
    assert len(told) >= 13
    for name, variant, *figures in told:
        floors = FLOORS[name + names[variant]].values()
        for floor, figure in zip(floors, figures, strict=True):
            assert floor + TOLERANCE == pytest.approx(float(figure), abs=0.0006), name
