"""Fetching the pages of a website: network access and crawl politeness. Independent of SQL and Flask."""
