"""gunicorn's settings and worker."""
