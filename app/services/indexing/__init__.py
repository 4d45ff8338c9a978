"""Writing documents to SQL and to the index. ``documents.py`` is the entrance for writers."""
