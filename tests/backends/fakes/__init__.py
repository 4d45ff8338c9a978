"""Search servers that run inside a test: they parse the real HTTP requests and answer in the servers' own words."""
