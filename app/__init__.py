"""The site search service."""
