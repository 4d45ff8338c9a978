"""Services: plain functions over a session, a store or an engine."""
