"""Code that is shown: what stands for the reader's key and site is marked, so that a script of the page can put it
there."""

from __future__ import annotations

from markupsafe import Markup, escape

PRIVATE_KEY = "svc_prv_…"
"""What stands for a private key in the guide."""

ANY_KEY = "YOUR_KEY"
"""What stands for the reader's key in samples."""

SITE = "YOUR_SITE"
"""What stands for the number of the reader's site in samples."""

INDEX = "YOUR_INDEX"
"""What stands for the name of its index in samples."""


def mark_own(code: str) -> Markup:
    """Code as HTML. No key is in it: the service does not know the reader's."""
    marked = escape(code)
    for placeholder in (PRIVATE_KEY, ANY_KEY, SITE, INDEX):
        marked = marked.replace(placeholder, Markup('<span class="own">{}</span>').format(placeholder))
    return marked
