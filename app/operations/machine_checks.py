"""Checks of this machine and its settings, which need neither the database nor another server."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement

from app.config import Settings
from app.storage.files import find_open_paths
from app.wording import size

DISTRIBUTION = "site-search-service"

LITTLE_SPACE, NO_SPACE = 2 * 1024**3, 256 * 1024**2
"""Free bytes of disk space below which a warning, and a problem, is reported."""

Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes:
        topic: What was checked, such as ``disk`` or ``file modes``.
        level: ``problem`` if something does not work, or will soon stop working.
        message: The result as a sentence.
        remedy: Advice to the operator; empty if the check passed.
    """

    topic: str
    level: Level
    message: str
    remedy: str = ""


def versions() -> Iterator[Finding]:
    """Compare the versions of the installed packages with the required versions."""
    wrong = []
    for line in requires(DISTRIBUTION) or ():
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            installed = version(requirement.name)
        except PackageNotFoundError:
            installed = "missing"
        if installed == "missing" or not requirement.specifier.contains(installed, prereleases=True):
            wrong.append(f"{requirement.name} {installed} (needs {requirement.specifier})")
    if wrong:
        yield Finding(
            "versions", "problem", f"Incompatible package versions: {', '.join(wrong)}.", "Reinstall the service."
        )
    else:
        yield Finding("versions", "ok", f"Version {version(DISTRIBUTION)} on Python {platform.python_version()}.")


def disk(settings: Settings) -> Iterator[Finding]:
    """Check the free disk space."""
    usage = shutil.disk_usage(settings.data_path)
    message = f"{size(usage.free)} of {size(usage.total)} are free for {settings.data_path}."
    if usage.free < NO_SPACE:
        yield Finding(
            "disk",
            "problem",
            message,
            "Free disk space now; otherwise, documents and search events can soon no longer be stored.",
        )
    elif usage.free < LITTLE_SPACE:
        yield Finding("disk", "warning", message, "Free disk space: a rebuild needs space for a second index.")
    else:
        yield Finding("disk", "ok", message)


def file_modes(settings: Settings) -> Iterator[Finding]:
    """Check that other users of the machine cannot read the data."""
    folder = settings.data_path
    open_paths = find_open_paths(folder)
    remedy = f"Run `chmod -R go-rwx {folder}`."
    if open_paths.files:
        message = f"Other users of this machine can read {_listed(open_paths.files)}."
        yield Finding("file modes", "problem", message, remedy)
    if open_paths.folders:
        message = f"Other users of this machine can list {_listed(open_paths.folders)}."
        yield Finding("file modes", "warning", message, remedy)
    if not open_paths.files and not open_paths.folders:
        yield Finding("file modes", "ok", f"Only this user can read {folder}.")


def _listed(paths: Sequence[Path]) -> str:
    return ", ".join(map(str, paths[:5])) + (f" and {len(paths) - 5} more" if len(paths) > 5 else "")


def proxies(settings: Settings) -> Iterator[Finding]:
    """Check that proxies are configured if TLS needs one."""
    if settings.public_url.startswith("https:") and settings.trusted_proxies == 0:
        message = (
            "A proxy terminates TLS (PUBLIC_URL is https), but TRUSTED_PROXIES is 0: all visitors share one IP address."
        )
        remedy = "Set TRUSTED_PROXIES to the number of proxies in front of the service."
        yield Finding("proxies", "warning", message, remedy)
    else:
        yield Finding("proxies", "ok", f"TRUSTED_PROXIES is {settings.trusted_proxies}.")
