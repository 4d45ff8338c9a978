"""Validation rules without a framework, shared by schemas and services."""
