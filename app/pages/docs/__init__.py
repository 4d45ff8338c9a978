"""The documentation as pages: the guide from its Markdown files, the reference from the OpenAPI document."""
