"""The files in deploy/ as Python values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

PROJECT = Path(__file__).resolve().parent.parent.parent
DEPLOY = PROJECT / "deploy"
COMPOSE_FILES = sorted(DEPLOY.rglob("compose*.yaml"))
OWN_COMPOSE_FILES = [DEPLOY / "compose.yaml", DEPLOY / "compose.single.yaml"]
UNITS = sorted((DEPLOY / "systemd").glob("site-search*"))
MANIFESTS = [file for file in sorted((DEPLOY / "kubernetes").glob("*.yaml")) if file.name != "kustomization.yaml"]
BROWSER_MANIFEST = DEPLOY / "kubernetes" / "browser" / "browser.yaml"


def text(name: str) -> str:
    """Return the text of a file in deploy/."""
    return (DEPLOY / name).read_text()


def compose(file: Path) -> dict[str, Any]:
    """Return a parsed compose file."""
    loaded: dict[str, Any] = yaml.safe_load(file.read_text())
    return loaded


def objects() -> Iterator[dict[str, Any]]:
    """Yield every object of the Kubernetes example."""
    for file in MANIFESTS:
        yield from yaml.safe_load_all(file.read_text())


def pods() -> Iterator[dict[str, Any]]:
    """Yield the pod specs of the Kubernetes example."""
    for each in objects():
        spec = each.get("spec", {})
        template = spec.get("jobTemplate", {}).get("spec", spec).get("template")
        if template is not None:
            yield template["spec"]


def kustomization() -> dict[str, Any]:
    """Return the parsed kustomization.yaml."""
    loaded: dict[str, Any] = yaml.safe_load(text("kubernetes/kustomization.yaml"))
    return loaded


def assignments(source: str) -> dict[str, str]:
    """Return ``NAME=value`` lines, including commented-out lines."""
    return dict(re.findall(r"^#?([A-Z][A-Z_]+)=(.*)$", source, re.MULTILINE))


def seconds(source: str) -> int:
    """Parse a time as nginx, compose, and Caddy write it: ``75s``."""
    match = re.fullmatch(r"(\d+)s?", source)
    assert match is not None, source
    return int(match[1])
