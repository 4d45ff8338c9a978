"""The pages that tell what was searched, and what to do about it."""
