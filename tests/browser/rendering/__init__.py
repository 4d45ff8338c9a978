"""Crawls of pages that need JavaScript, with a real browser."""
