"""Requests and answers of the gateway, Meilisearch's search API."""
