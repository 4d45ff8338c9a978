"""The part of Algolia's search API that DocSearch and plain searches need, on top of any engine."""
