"""Sources: crawling a site's pages into its documents."""
