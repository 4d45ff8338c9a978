"""Converting a visitor's query to a ranked tantivy query."""
