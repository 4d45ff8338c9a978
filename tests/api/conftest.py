"""One application for all tests of a module, where tests do not disturb one another."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from argon2 import PasswordHasher
from flask import Flask

from app.services import accounts
from tests.callers import Tenant, register_tenant
from tests.conftest import close_app, make_app, make_settings


@pytest.fixture(scope="module")
def shared_app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flask]:
    """An application on the largest plan; its tests must not count on being alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accounts, "_hasher", PasswordHasher(time_cost=1, memory_cost=64, parallelism=1))
        app = make_app(make_settings(tmp_path_factory.mktemp("shared"), default_plan="enterprise"))
        yield app
        close_app(app)


@pytest.fixture(scope="module")
def ann(shared_app: Flask) -> Tenant:
    """A customer of the shared application."""
    return register_tenant(shared_app, "ann@example.com")


@pytest.fixture(scope="module")
def eve(shared_app: Flask) -> Tenant:
    """Another one."""
    return register_tenant(shared_app, "eve@example.com")


@pytest.fixture(autouse=True)
def _room_in_every_window(request: pytest.FixtureRequest) -> None:
    """Tests of a shared application do not use up one another's requests."""
    if "shared_app" in request.fixturenames:
        request.getfixturevalue("shared_app").extensions["runtime"].counters.reset_all()
