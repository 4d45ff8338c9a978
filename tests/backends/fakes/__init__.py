"""Fake search servers inside a test: they parse real HTTP requests and respond in the servers' own format."""
