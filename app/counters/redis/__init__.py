"""Counters in Redis."""
