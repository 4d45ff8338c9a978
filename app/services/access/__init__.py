"""Access control: keys, credentials, rights, and sessions. Begin with ``callers.py``."""
