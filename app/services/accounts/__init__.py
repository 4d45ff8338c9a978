"""Accounts and their members. Begin with ``accounts.py``."""
