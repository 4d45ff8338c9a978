"""A run of a source: its pages are fetched, read, and indexed as documents."""
