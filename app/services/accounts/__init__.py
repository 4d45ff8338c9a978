"""Accounts and their members. ``accounts.py`` is the entrance; ``emails.py`` and ``identities.py`` confirm who people
are."""
