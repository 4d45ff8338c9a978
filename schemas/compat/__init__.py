"""Requests and responses of APIs that are compatible with other search services."""
