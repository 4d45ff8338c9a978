"""Pages of analytics and the inbox."""
