"""The audit log. ``recording.py`` writes entries with each flush; ``audited.py`` defines what is logged, ``entries.py``
reads."""
