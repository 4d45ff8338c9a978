"""Visits to hosts: which URLs a run requests, turns at hosts, robots.txt, and failing hosts."""
