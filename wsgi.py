"""The WSGI application: ``gunicorn wsgi:app``."""

from app.application import create_app
from app.config import ConfigurationError

try:
    app = create_app()
except ConfigurationError as error:
    raise SystemExit(f"The service cannot start: {error}") from error
