"""An installation that sends mail, and its mail server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask

from app.runtime import Runtime
from tests.conftest import close_app, make_app, make_settings
from tests.mail_server import MailServer, mail_server, mail_settings


@pytest.fixture
def server() -> Iterator[MailServer]:
    with mail_server() as made:
        yield made


@pytest.fixture
def app(tmp_path: Path, server: MailServer) -> Iterator[Flask]:
    """An installation that sends mail."""
    made = make_app(make_settings(tmp_path, **mail_settings(server)))
    yield made
    close_app(made)


@pytest.fixture
def part(app: Flask) -> Runtime:
    part: Runtime = app.extensions["runtime"]
    return part
