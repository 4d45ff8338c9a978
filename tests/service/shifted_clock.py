"""The application with an adjustable clock: it is ahead by the number of seconds in the file CLOCK_FILE."""

from __future__ import annotations

import os
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

from app import clock
from app.application import create_app

_FILE = Path(os.environ["CLOCK_FILE"])


class _ShiftedDatetime(datetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Any:
        return datetime.now(tz) + timedelta(seconds=float(_FILE.read_text()))


clock.datetime = _ShiftedDatetime
app = create_app()
