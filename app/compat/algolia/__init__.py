"""Algolia's search API, as far as DocSearch and plain searches need it, over whichever engine runs."""
