"""Crawls of pages that scripts draw, with a real browser."""
