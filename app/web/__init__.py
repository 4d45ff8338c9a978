"""Code that depends on Flask's request."""
