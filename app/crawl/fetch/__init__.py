"""Fetching the pages of a web site: the network and its manners, without SQL and without Flask."""
