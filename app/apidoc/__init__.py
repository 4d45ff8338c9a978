"""The OpenAPI document, its examples, and the API reference and sample programs that are generated from it."""
