"""Learning from clicks."""
