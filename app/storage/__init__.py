"""The SQL database and locks between processes."""
