"""Operator commands beside the accounts'."""
