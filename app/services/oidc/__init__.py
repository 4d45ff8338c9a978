"""Logging in with an OpenID Connect provider."""
