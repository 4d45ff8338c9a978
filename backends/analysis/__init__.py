"""Converting text to terms, in the same way for documents and queries."""
