"""The parts a running process has: made once by ``create_app``, opened at first use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from flask import Flask, current_app

from app.config import Settings
from app.counters.base import CounterStore
from app.database import Database
from app.locks import Locks
from app.plans import PlanTable
from app.services.credentials import CredentialCache
from app.services.engines import Engines
from app.services.events import EventRecorder


@dataclass
class Runtime:
    """What requests, commands and jobs share."""

    settings: Settings
    plans: PlanTable
    database: Database
    locks: Locks
    counters: CounterStore
    engines: Engines
    events: EventRecorder
    credentials: CredentialCache = field(default_factory=CredentialCache)


def attach(app: Flask, runtime: Runtime) -> None:
    """Give ``app`` its parts."""
    app.extensions["runtime"] = runtime


def runtime() -> Runtime:
    """The current application's parts."""
    return cast(Runtime, current_app.extensions["runtime"])
