"""Typesense as a search backend."""
