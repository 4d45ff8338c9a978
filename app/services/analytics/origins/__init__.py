"""Origins of searches: where they came from."""
