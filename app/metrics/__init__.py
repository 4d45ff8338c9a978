"""Metrics for Prometheus: counts of a machine's processes, and values computed on request."""
