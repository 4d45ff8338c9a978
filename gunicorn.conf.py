"""What gunicorn reads if it is started in this folder: the settings as shipped."""

import runpy
from pathlib import Path

globals().update(runpy.run_path(str(Path(__file__).parent / "app" / "server" / "gunicorn_settings.py")))
