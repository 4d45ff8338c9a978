"""Webhooks. ``webhooks.py`` manages them and queues their events; ``delivery.py`` sends the events."""
