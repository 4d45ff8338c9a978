"""The page on which owners try a site's search."""
