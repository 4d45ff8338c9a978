"""Pages read from response bodies: their text, metadata, links, and directives. Nothing here accesses the network."""
