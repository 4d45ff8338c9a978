"""Embedding: computing vectors of texts. Texts with similar meanings have similar vectors."""
