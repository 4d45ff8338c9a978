"""Converting the typed query to a ranked tantivy query."""
