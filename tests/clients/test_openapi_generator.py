"""Clients that openapi-generator makes of the API document, in five languages, do a customer's work."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.conftest import Customer

Tool = Callable[[str], str]

OPTIONS = {
    "python": ("packageName=site_search",),
    "typescript-fetch": ("supportsES6=true", "importFileExtension=.js"),
    "php": ("invokerPackage=SiteSearch",),
    "go": ("packageName=sitesearch", "isGoSubmodule=false"),
    "java": (
        "library=native", "invokerPackage=com.example.sitesearch", "apiPackage=com.example.sitesearch.api",
        "modelPackage=com.example.sitesearch.model", "openApiNullable=false", "useJakartaEe=true",
    ),
}  # fmt: skip
"""Generator to its additional properties."""


def run(folder: Path, *command: str, **environment: str) -> str:
    """Run a command, which must work; gives what it prints."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, f"{' '.join(command[:3])} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def customer(make_customer: Callable[[str], Customer]) -> Customer:
    return make_customer("generator@example.com")
