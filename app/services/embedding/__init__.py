"""Embedding: vectors of texts, which are similar if the texts have a similar meaning."""
