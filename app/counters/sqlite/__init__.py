"""Counters in a SQLite file."""
