"""Running sources: pages are fetched, read, and kept as documents."""
