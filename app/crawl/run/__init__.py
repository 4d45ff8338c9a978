"""A run of a source, which fetches and reads its pages, and indexes them as documents."""
