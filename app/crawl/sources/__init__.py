"""Sources and the queue of their runs."""
