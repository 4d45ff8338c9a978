"""Searches of a site, previews with other settings, and suggestions. ``search.py`` runs a search."""
