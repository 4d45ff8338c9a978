"""The files for operators, checked by the programs that read them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.deploy.files import BROWSER_MANIFEST, COMPOSE_FILES, DEPLOY, MANIFESTS, UNITS
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.deploy

MOST_EXPOSURE = 2.0
"""Maximum exposure level from systemd-analyze security, from 0 to 10; up to 2 it reports "OK" or better."""


def program(name: str) -> str:
    """Return the path of a program. Without it, the test is skipped; with CI set, it fails."""
    folders = (str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath), "/usr/sbin")
    found = shutil.which(name, path=os.pathsep.join(folders))
    if found is None:
        if os.environ.get("CI"):
            pytest.fail(f"{name} is missing")
        pytest.skip(f"{name} is needed")
    return found


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A root folder with the units and the programs they start."""
    program("systemd-analyze")
    units = tmp_path / "etc/systemd/system"
    units.mkdir(parents=True)
    for unit in UNITS:
        shutil.copy(unit, units)
        for path in re.findall(r"^Exec\w+=(\S+)", unit.read_text(), re.MULTILINE):
            command = tmp_path / path.removeprefix("/")
            command.parent.mkdir(parents=True, exist_ok=True)
            command.write_text("#!/bin/sh\n")
            command.chmod(0o755)
    shutil.copytree("/lib/systemd/system", tmp_path / "lib/systemd/system", symlinks=True)
    return tmp_path


def test_systemd_accepts_the_units(machine: Path) -> None:
    done = subprocess.run(
        [program("systemd-analyze"), f"--root={machine}", "verify", "--man=no", *(unit.name for unit in UNITS)],
        capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip

    ours = [line for line in done.stderr.splitlines() if "site-search" in line]
    assert (done.returncode, ours) == (0, [])


def test_systemd_reports_a_mistake_in_a_unit(machine: Path) -> None:
    unit = machine / "etc/systemd/system/site-search.service"
    unit.write_text(unit.read_text().replace("Type=notify", "Type=notified"))

    done = subprocess.run(
        [program("systemd-analyze"), f"--root={machine}", "verify", "--man=no", unit.name],
        capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip

    assert "notified" in done.stderr


@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit.suffix == ".service"], ids=lambda unit: unit.name)
def test_systemd_security_exposure_of_units_is_low(unit: Path) -> None:
    done = subprocess.run(
        [program("systemd-analyze"), "security", "--offline=true", "--no-pager", str(unit)],
        capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip

    (exposure,) = re.findall(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert float(exposure) <= MOST_EXPOSURE, done.stdout


def test_compose_files_follow_the_compose_specification() -> None:
    done = subprocess.run(
        [program("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", *map(str, COMPOSE_FILES)],
        capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("file", [*MANIFESTS, BROWSER_MANIFEST], ids=lambda file: file.name)
def test_kubernetes_objects_are_valid(file: Path) -> None:
    if not os.environ.get("CI"):
        pytest.importorskip("kubernetes_validate")
    import kubernetes_validate

    documents = list(yaml.safe_load_all(file.read_text()))
    assert documents
    for each in documents:
        kubernetes_validate.validate(each, kubernetes_validate.latest_version(), strict=True)


def test_hadolint_reports_no_problem_in_the_containerfile() -> None:
    done = subprocess.run(
        [program("hadolint"), "--format", "json", str(DEPLOY / "Containerfile")],
        capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip

    assert json.loads(done.stdout) == []
