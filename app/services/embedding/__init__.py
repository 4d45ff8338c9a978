"""Vectors of texts, which are similar if the texts have similar meanings: computed, stored, and compared.

``embedder.py`` is the interface of embedders, and ``vectorizer.py`` keeps the vectors of documents current.
"""
