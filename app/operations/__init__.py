"""The use cases, each once for the JSON API, the pages and the commands: a transaction, a service, and what follows.

An operation takes the runtime and the caller, and knows no request.
"""
