"""Algolia's search API on top of any engine, as far as DocSearch and plain searches need it."""
