"""What to do about queries that disappoint visitors."""
