"""Indexes and where they are kept."""
