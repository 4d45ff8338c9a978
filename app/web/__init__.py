"""What knows Flask's request."""
