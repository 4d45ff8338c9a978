"""Searching a site: searches, their preview with other settings, suggestions."""
