"""The size limit of one response."""

from __future__ import annotations

from app.errors import ApiError, ErrorCode


class ResponseBudget:
    """The bytes of JSON that the documents of one response may still use; several searches may share it.

    Args:
        max_bytes: Maximum number of bytes of JSON.

    Attributes:
        available: Number of bytes that are still available.
    """

    def __init__(self, max_bytes: int):
        self._max_bytes = max_bytes
        self.available = max_bytes

    def fits(self, size: int) -> bool:
        """Whether ``size`` bytes are available."""
        return size <= self.available

    def check(self, size: int) -> None:
        """Reject documents of at least ``size`` bytes before they are encoded, if they do not fit.

        Raises:
            ApiError: 400 ``answer_too_large``.
        """
        if size > self.available:
            raise self.exceeded()

    def spend(self, size: int) -> None:
        """Use ``size`` bytes.

        Raises:
            ApiError: 400 ``answer_too_large``.
        """
        self.check(size)
        self.available -= size

    def exceeded(self) -> ApiError:
        """Return the 400 for documents that exceed the limit."""
        return ApiError(
            ErrorCode.ANSWER_TOO_LARGE,
            f"The response would contain more than {self._max_bytes} bytes of documents: "
            "request fewer hits, or select the fields you need.",
        )
