"""Embedding: texts as vectors, which are close to each other where the texts mean the same."""
