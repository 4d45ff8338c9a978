"""Documents on their way into SQL and the index."""
