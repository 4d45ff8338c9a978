"""The files of deploy/ as Python values."""

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


def text(name: str) -> str:
    """A file of deploy/."""
    return (DEPLOY / name).read_text()


def compose(file: Path) -> dict[str, Any]:
    """A compose file."""
    loaded: dict[str, Any] = yaml.safe_load(file.read_text())
    return loaded


def objects() -> Iterator[dict[str, Any]]:
    """Everything that the Kubernetes example makes."""
    for file in MANIFESTS:
        yield from yaml.safe_load_all(file.read_text())


def pods() -> Iterator[dict[str, Any]]:
    """The pods among them."""
    for each in objects():
        template = each.get("spec", {}).get("template")
        if template is not None:
            yield template["spec"]


def kustomization() -> dict[str, Any]:
    """What puts them together."""
    loaded: dict[str, Any] = yaml.safe_load(text("kubernetes/kustomization.yaml"))
    return loaded


def assignments(source: str) -> dict[str, str]:
    """``NAME=value`` lines, also those that are commented out."""
    return dict(re.findall(r"^#?([A-Z][A-Z_]+)=(.*)$", source, re.MULTILINE))


def seconds(source: str) -> int:
    """A time as nginx, compose, and Caddy write it: ``75s``."""
    match = re.fullmatch(r"(\d+)s?", source)
    assert match is not None, source
    return int(match[1])
