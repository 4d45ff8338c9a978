"""Exact counts across threads, processes, and machines: see :mod:`app.counters.base`."""
