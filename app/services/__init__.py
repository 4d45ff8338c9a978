"""What operations mean: plain functions over a session, a store or an engine."""
