"""Requests and responses of the gateway, Meilisearch's search API."""
