"""Applies the service's gunicorn settings if gunicorn is started in this folder."""

import runpy
from pathlib import Path

globals().update(runpy.run_path(str(Path(__file__).parent / "app" / "server" / "gunicorn_settings.py")))
