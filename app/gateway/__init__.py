"""The gateway: the search subset of Meilisearch's HTTP API."""
