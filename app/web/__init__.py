"""Everything that knows Flask's request."""
