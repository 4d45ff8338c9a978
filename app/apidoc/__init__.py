"""The OpenAPI document and what is made of it: examples, the reference, and samples of calls."""
