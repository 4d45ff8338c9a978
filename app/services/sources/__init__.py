"""Sources: where a site's pages are, and the runs that crawl them."""
