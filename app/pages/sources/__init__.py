"""Pages for a site's sources and the reports of their runs."""
