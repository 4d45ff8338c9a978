"""Email: queued in SQL by the transaction that causes it, and sent in the background. Begin with ``letters.py``."""
