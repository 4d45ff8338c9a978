"""Handling of unexpected exceptions: each costs one page, list, or entry, and is logged and counted for operators.

Only exceptions that concern the whole run may end it. Any other exception while one URL is handled is a bug, even if a
hostile page triggers it, and must not cost the owner the other pages.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import Counter

from app.crawl.fetch.values import NotIndexed, Reason
from app.errors import ApiError

UNEXPECTED_ERRORS = Counter(
    "search_crawl_errors_total", "Unexpected exceptions of crawls; the log has their tracebacks.", ["step"]
)
STEPS = ("reading", "page", "list", "writing", "run")
"""Where exceptions occur: in the process that reads files, while handling a page, while handling a sitemap or feed,
while storing outcomes, or elsewhere, where they end the run.
"""
for _step in STEPS:
    UNEXPECTED_ERRORS.labels(_step)  # Exported as 0 from the start, so that the first increase is visible.

log = logging.getLogger(__name__)


class EndsRun(Exception):
    """Ends a whole run: it was stopped or lost, or cannot be finished."""


@contextmanager
def guarded(step: str, subject: str) -> Iterator[None]:
    """Translate an unexpected exception to :class:`NotIndexed` (``internal_error``), after logging and counting it.

    Args:
        step: One of :data:`STEPS`.
        subject: The URL that is being processed, for the log.

    Raises:
        NotIndexed: The exception was unexpected, or already said why the URL is not indexed.
        EndsRun, ApiError: The exception concerns the whole run.
    """
    try:
        yield
    except (NotIndexed, EndsRun, ApiError):
        raise
    except Exception as error:
        UNEXPECTED_ERRORS.labels(step).inc()
        log.exception("unexpected error (%s): %s", step, subject)
        raise NotIndexed(
            Reason.INTERNAL_ERROR, "The crawler failed unexpectedly. The operator can find out why."
        ) from error
