"""Requests and responses of the API, one module per noun."""
