"""The WSGI application: ``gunicorn wsgi:app``."""

import sys

from app.application import create_app
from app.config import ConfigurationError

try:
    app = create_app()
except ConfigurationError as error:
    sys.stderr.write(f"The service cannot start: {error}\n")
    raise SystemExit(error.exit_code) from error
