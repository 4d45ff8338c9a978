"""Vectors of documents: made in the background, and compared with the vector of a query."""
