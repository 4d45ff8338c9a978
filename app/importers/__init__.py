"""Readers for files exported by other systems. They turn bytes into raw documents and reports on unreadable lines."""
