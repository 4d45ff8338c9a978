"""The audit log: ``recording.py`` writes entries, ``audited.py`` defines the logged fields, ``entries.py`` reads."""
