"""The files for operators in deploy/: what they say, and whether they work."""
