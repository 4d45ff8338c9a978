"""Document vectors, which are computed in the background and compared with query vectors."""
