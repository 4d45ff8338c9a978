"""Dependencies of the service, and whether it works."""
