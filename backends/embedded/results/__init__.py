"""From matches to an answer: order, facets, snippets, highlights."""
