"""Pages from HTML."""
