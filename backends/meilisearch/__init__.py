"""Meilisearch as a search backend."""
