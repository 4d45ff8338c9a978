"""An installation with an OpenID Connect provider."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask

from tests.conftest import close_app, make_app, make_settings
from tests.identity_provider import IdentityProvider, identity_provider


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with identity_provider() as made:
        yield made


@pytest.fixture
def app(tmp_path: Path, provider: IdentityProvider) -> Iterator[Flask]:
    """An installation that uses the provider."""
    made = make_app(make_settings(tmp_path, **provider.settings()))
    yield made
    close_app(made)
