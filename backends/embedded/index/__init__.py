"""Tantivy indexes, on disk and in memory."""
