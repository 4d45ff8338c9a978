"""Use cases, each implemented once for the JSON API, the pages, and the commands: a transaction, services, and
follow-up work.

An operation takes the runtime and the caller, and does not depend on the HTTP request.
"""
