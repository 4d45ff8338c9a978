"""Requests and answers in the words of other services."""
