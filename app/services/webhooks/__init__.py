"""Webhooks: events are queued in SQL with what causes them (:func:`events.announce`), and sent in the background."""
