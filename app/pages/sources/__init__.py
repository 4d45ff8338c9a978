"""A site's sources and the reports of their runs, as pages."""
