"""The page that tries a site's search."""
