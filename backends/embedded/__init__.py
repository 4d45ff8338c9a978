"""The embedded search engine: tantivy, and what this service builds around it."""
