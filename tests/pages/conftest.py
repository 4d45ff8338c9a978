"""Fixtures for tests of pages."""

from __future__ import annotations

import pytest
from flask import Flask

from tests.callers import Tenant
from tests.pages.people import Person, person_of


@pytest.fixture
def person(tenant: Tenant) -> Person:
    """The customer, logged in, in a browser."""
    return person_of(tenant)


@pytest.fixture
def passer_by(app: Flask) -> Person:
    """A visitor without an account."""
    return Person(app)
