"""Errors of search engines, in this service's own terms."""

from __future__ import annotations


class BackendError(Exception):
    """Base of all exceptions that a search backend raises on purpose.

    The message may be shown to a caller: it contains neither the engine's own message, which is in ``__cause__``, nor
    credentials.
    """


class BackendUnavailable(BackendError):
    """The engine cannot work now: it refused the connection, is too slow or overloaded, or sent an invalid response.

    Args:
        message: Describes the failure; may be shown to a caller.
        retry_after: Seconds after which a retry makes sense.
    """

    def __init__(self, message: str = "The search engine is unavailable.", *, retry_after: int = 5):
        super().__init__(message)
        self.retry_after = retry_after


class EngineNotAsked(BackendUnavailable):
    """The request was not sent to the engine, because the engine did not respond to earlier ones."""


class ResponseTooLarge(BackendUnavailable):
    """The engine's response exceeds a size limit. For a search: it has too many hits, or they are too large."""

    def __init__(self) -> None:
        super().__init__("The search engine's response is too large to read.")


class UnreadableResponse(BackendUnavailable):
    """The engine's response does not have the expected form."""

    def __init__(self) -> None:
        super().__init__("The search engine sent an unreadable response.")


class BackendMisconfigured(BackendUnavailable):
    """The engine rejects the service's credentials or has an incompatible version; an operator must act."""


class BackendRejected(BackendError):
    """The engine cannot run the caller's query; the caller must change it.

    Args:
        parameter: Name of the invalid parameter of the search API: ``q``, ``filters``, ``sort``, ``facets``, or another
            attribute of :class:`~backends.query.SearchQuery`.
        message: Describes what is wrong with it; may be shown to a caller.
        position: Offset of the error in the parameter, in characters from 0, if known.
    """

    def __init__(self, parameter: str, message: str, *, position: int | None = None):
        super().__init__(message)
        self.parameter = parameter
        self.position = position


class IndexNotFound(BackendError):
    """The engine has no index with this name."""

    def __init__(self, index: str):
        super().__init__(f"The index {index} does not exist.")
        self.index = index
