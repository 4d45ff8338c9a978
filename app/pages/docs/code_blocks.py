"""Code that is shown: what stands for the reader's key is marked, so that a script of the page can put it there."""

from __future__ import annotations

from markupsafe import Markup, escape

PRIVATE_KEY = "svc_prv_…"
"""What stands for a private key in the guide."""

ANY_KEY = "YOUR_KEY"
"""What stands for the reader's key in samples."""


def mark_keys(code: str) -> Markup:
    """Code as HTML. No key is in it: the service does not know the reader's."""
    marked = escape(code)
    for placeholder in (PRIVATE_KEY, ANY_KEY):
        marked = marked.replace(placeholder, Markup('<span class="key">{}</span>').format(placeholder))
    return marked
