"""Shared fixtures: an application on the embedded engine, and callers of every type."""

from __future__ import annotations

import atexit
import filecmp
import gc
import os
import random
import shutil
import tempfile
from collections.abc import Generator, Iterator
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
import time_machine
from argon2 import PasswordHasher
from flask import Flask
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from jinja2 import BytecodeCache
from jinja2.bccache import Bucket
from sqlalchemy import Dialect, event
from werkzeug.routing import Map, Rule, RuleFactory

from app.apidoc.openapi import ServiceApi
from app.application import Application, create_app
from app.config import Settings, load_settings
from app.runtime import Runtime
from app.services.accounts import accounts
from app.storage.database import Database
from app.storage.migrate import upgrade
from tests import responses, shared_servers
from tests.callers import Browser, Tenant, register_tenant
from tests.responses import CheckedClient

SECRET = "a secret of the tests that is long enough"

# Examples may be slow on a busy machine; other settings of the default profile (CI or not) stay unchanged.
hypothesis_settings.register_profile(
    "unhurried", hypothesis_settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.load_profile("unhurried")


# Collecting garbage among the objects of a whole service took a fifth of the tests' CPU time.
gc.set_threshold(100_000, 50, 1000)


def pytest_collection_finish() -> None:
    """Exclude imported and collected objects from further garbage collections."""
    gc.freeze()


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Use one process more than the number of cores, because some tests wait for servers, deadlines, or processes."""
    return (yield) + 1


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select and order the tests by environment variables.

    TEST_CASES limits the parameter sets of each test function. Use it to repeat a suite that has already run
    completely, because tables of cases give the same results on every server. TEST_ORDER is a seed that shuffles
    modules and the tests in each module.
    """
    limit = int(os.environ.get("TEST_CASES", 0))
    if limit:
        functions: dict[str, list[pytest.Item]] = {}
        for item in items:
            functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
        deselected: set[pytest.Item] = set()
        for name, cases in functions.items():
            first = crc32(name.encode()) % len(cases)  # So that of two servers, each gets half of the tests.
            deselected.update((cases[first:] + cases[:first])[limit:])
        config.hook.pytest_deselected(items=list(deselected))
        items[:] = [item for item in items if item not in deselected]
    seed = os.environ.get("TEST_ORDER")
    if not seed:
        return
    chance = random.Random(seed)
    chance.shuffle(items)
    places = {path: chance.random() for path in dict.fromkeys(item.path for item in items)}
    items.sort(key=lambda item: places[item.path])


def make_settings(folder: Path, **overrides: object) -> Settings:
    """Return settings of a separate installation; TEST_… variables select other databases, counters, and engines."""
    values: dict[str, object] = {
        "data_dir": str(folder),
        "secret_key": SECRET,
        "search_url": shared_servers.search_url() or "memory://",
        "limits_url": shared_servers.limits_url(folder),
        "database_url": shared_servers.database_url(folder),
        "default_plan": "pro",
        "limits_timeout_seconds": 20.0,
        "database_timeout_seconds": 20.0,
    }
    values.update(overrides)
    return load_settings({}, **values)


def make_app(settings: Settings) -> Flask:
    """Create an installation with tables, whose test clients check every response (see tests/responses.py)."""
    app = create_app(settings, background=False, application=_Application)
    app.jinja_env.bytecode_cache = _templates
    app.extensions["documentation"] = _documentation
    api: ServiceApi = app.extensions["flask-smorest"]["apis"][""]["ext_obj"]
    api._document = responses.api_documents[0] if responses.api_documents else None
    database: Database = app.extensions["runtime"].database
    if database.is_sqlite:  # Tests need no protection against power loss.
        event.listen(database.engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous=OFF"))
    has_file = settings.database_url == f"sqlite:///{settings.data_path / 'service.db'}"
    if has_file:
        shutil.copyfile(migrated_file(), settings.data_path / "service.db")
    shared_servers.make_empty(settings.data_path)
    if has_file or settings.database_url == shared_servers.database_url(settings.data_path):
        _share_statements(database)
    if settings.search_url == shared_servers.search_url():
        if not _searching:  # An application that loses its index would rebuild it and revoke its engine keys.
            engine = app.extensions["runtime"].engines.default
            for index in engine.list_indexes():
                engine.delete_index(index)
        _searching.add(settings.data_path)
    return app


_searching: set[Path] = set()
"""Data directories of the open applications that share a search engine."""


class _Routes(Map):
    """The routes of all applications in this process, compiled once because they do not depend on the application."""

    def __init__(self) -> None:
        super().__init__()
        self._known: set[tuple[object, ...]] = set()

    def add(self, rulefactory: RuleFactory) -> None:
        assert isinstance(rulefactory, Rule)
        route = (rulefactory.rule, rulefactory.endpoint, frozenset(rulefactory.methods or ()))
        if route not in self._known:
            self._known.add(route)
            super().add(rulefactory)


_routes = _Routes()


class _Application(Application):
    """The service, with shared routes and test clients that check every response."""

    test_client_class = CheckedClient
    url_map_class = staticmethod(lambda **_: _routes)


class _CompiledTemplates(BytecodeCache):
    """The templates of all applications in this process, compiled once."""

    def __init__(self) -> None:
        self._compiled: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self._compiled:
            bucket.bytecode_from_string(self._compiled[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._compiled[bucket.key] = bucket.bytecode_to_string()


_templates = _CompiledTemplates()

_documentation: dict[str, Any] = {}
"""The documentation's pages of all applications in this process, rendered once."""

_dialects: dict[str, Dialect] = {}
_statements: dict[Any, Any] = {}
"""The SQL statements of all applications in this process, compiled once for each dialect."""


def _share_statements(database: Database) -> None:
    engine = database.engine
    if engine.dialect.name not in _dialects:
        engine.connect().close()  # A dialect detects the capabilities of the first server.
        database.dispose()
        _dialects[engine.dialect.name] = engine.dialect
    for one in (engine, database.writing_sessions.kw["bind"]):
        one.dialect = _dialects[engine.dialect.name]
        one.update_execution_options(compiled_cache=_statements)


@cache
def migrated_file() -> Path:
    """Return a SQLite file with empty tables, created once by the migrations and copied for each test."""
    path = Path(tempfile.mkdtemp(prefix="migrated-")) / "service.db"
    atexit.register(shutil.rmtree, path.parent, ignore_errors=True)
    database = Database(f"sqlite:///{path}")
    upgrade(database)
    with database.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    database.dispose()
    return path


@pytest.fixture(scope="session", autouse=True)
def _cheap_passwords() -> Iterator[None]:
    """Make password hashing fast: argon2 is slow by design, and the tests register hundreds of accounts."""
    hasher = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accounts, "_hasher", hasher)
        patch.setattr(accounts, "_NO_ACCOUNT_HASH", hasher.hash("no account has this password"))
        yield


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Flask]:
    """An application on the embedded engine, without registered users."""
    application = make_app(make_settings(tmp_path))
    yield application
    close_app(application)


@pytest.fixture
def part(app: Flask) -> Runtime:
    """The components of the application."""
    runtime: Runtime = app.extensions["runtime"]
    return runtime


def close_app(application: Flask) -> None:
    """Release the resources of an application."""
    part = application.extensions["runtime"]
    application.extensions["jobs"].stop()
    part.close()
    shared_servers.refund(part.settings.data_path)
    _searching.discard(part.settings.data_path)


@pytest.fixture
def tenant(app: Flask, _registered: tuple[Path, Tenant] | None) -> Tenant:
    """A registered customer with a site and a key of every type."""
    settings: Settings = app.extensions["runtime"].settings
    if _registered is None or not _is_new(settings) or time_machine.escape_hatch.is_travelling():
        return register_tenant(app, "ann@example.com")
    folder, registered = _registered
    shutil.copyfile(folder / "service.db", settings.data_path / "service.db")
    browser = Browser(app.test_client(), registered.browser.csrf_token)
    browser.client._cookies = registered.browser.client._cookies.copy()
    return replace(deepcopy(replace(registered, app=None, browser=None)), app=app, browser=browser)


@pytest.fixture(scope="session")
def _registered(tmp_path_factory: pytest.TempPathFactory, _cheap_passwords: None) -> tuple[Path, Tenant] | None:
    """The customer of a closed application and the folder with its database, or ``None`` with servers.

    Copying this database takes 1 ms of CPU, and registering a customer 28 ms.
    """
    if {"TEST_DATABASE_URL", "TEST_SEARCH_URL"} & os.environ.keys():
        return None
    folder = tmp_path_factory.mktemp("registered")
    application = make_app(make_settings(folder))
    tenant = register_tenant(application, "ann@example.com")
    close_app(application)
    return folder, tenant


def _is_new(settings: Settings) -> bool:
    """Whether an application has the usual settings and never opened its database."""
    file = settings.data_path / "service.db"
    return (
        settings == make_settings(settings.data_path)
        and not file.with_name("service.db-wal").exists()
        and filecmp.cmp(file, migrated_file(), shallow=False)
    )


@pytest.fixture
def stranger(app: Flask, tenant: Tenant) -> Tenant:
    """Another customer with a site and a key of every type."""
    return register_tenant(app, "eve@example.com")


@pytest.fixture(scope="module")
def shared_app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flask]:
    """An application on the largest plan for all tests of a module, which must not assume exclusive use."""
    application = make_app(make_settings(tmp_path_factory.mktemp("shared"), default_plan="enterprise"))
    yield application
    close_app(application)


@pytest.fixture(scope="module")
def ann(shared_app: Flask) -> Tenant:
    """A customer of the shared application."""
    return register_tenant(shared_app, "ann@example.com")


@pytest.fixture(scope="module")
def eve(shared_app: Flask) -> Tenant:
    """Another customer of the shared application."""
    return register_tenant(shared_app, "eve@example.com")


@pytest.fixture(autouse=True)
def _room_in_every_window(request: pytest.FixtureRequest) -> None:
    """Reset the rate limits, so that tests of a shared application do not use up each other's requests."""
    if "shared_app" in request.fixturenames:
        request.getfixturevalue("shared_app").extensions["runtime"].counters.reset_all()
