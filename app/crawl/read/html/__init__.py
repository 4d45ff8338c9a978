"""From HTML to a page."""
