"""Search events, and the analytics computed from them. Begin with ``events.py``."""
