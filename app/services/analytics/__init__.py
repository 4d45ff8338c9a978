"""Search events and what they tell."""
