"""Fetching and reading the pages of a web site: the network and text, without SQL and without Flask."""
