"""Readers of files that other systems export: they turn bytes into raw documents and reports on unreadable lines."""
