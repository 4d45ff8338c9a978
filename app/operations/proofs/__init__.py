"""Proofs, from elsewhere, of who somebody is: of their mailbox, and of an OpenID Connect provider."""
