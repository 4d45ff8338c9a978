"""Metrics for Prometheus: what the processes of a machine count, and what is worked out when it is asked for."""
