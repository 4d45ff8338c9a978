"""Remedies for queries that disappoint visitors."""
