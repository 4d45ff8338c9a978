"""What gunicorn needs to serve the application."""
