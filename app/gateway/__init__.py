"""The search subset of Meilisearch's HTTP API."""
