"""Sources, their schedule, and the queue of their runs."""
