"""The files for operators in deploy/: their content, and whether they work."""
