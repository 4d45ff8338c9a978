"""Settings and a worker of gunicorn, to serve the application."""
