"""Merging and vacuuming of indexes on disk."""
