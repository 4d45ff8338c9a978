"""Converting matches to results: order, facets, snippets, and highlights."""
