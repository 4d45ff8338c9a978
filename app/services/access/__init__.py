"""Keys, credentials and sessions."""
