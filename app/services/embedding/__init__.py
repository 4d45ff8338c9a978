"""Vectors of texts: computed, stored, and compared. Texts with similar meanings have similar vectors.

``embedder.py`` is the interface of embedders, and ``vectorizer.py`` keeps the vectors of documents current.
"""
