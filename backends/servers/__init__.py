"""The common part of the search servers: HTTP, URLs, IDs, responses."""
