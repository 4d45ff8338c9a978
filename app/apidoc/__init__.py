"""The OpenAPI document, and content derived from it: examples, the API reference, and sample calls."""
