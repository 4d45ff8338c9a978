"""Vectors of documents, which are computed in the background and compared with the vector of a query."""
