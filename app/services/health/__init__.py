"""What the service depends on, and whether it works."""
