"""Room in an answer, found out while its hits are made, one by one."""

from __future__ import annotations

from app.errors import ApiError, ErrorCode


class AnswerRoom:
    """The room for documents in one answer, formatted copies included.

    Args:
        most: In bytes, as they are sent.
    """

    def __init__(self, most: int):
        self._most = most
        self._left = most

    @property
    def left(self) -> int:
        """The bytes that are left."""
        return self._left

    def check(self, size: int) -> None:
        """Refuse what is about to be made if so many bytes, or more, do not fit.

        Raises:
            ApiError: 400 ``answer_too_large``.
        """
        if size > self._left:
            raise self.too_small()

    def fits(self, size: int) -> bool:
        """Tell whether there is room for so many bytes."""
        return size <= self._left

    def too_small(self) -> ApiError:
        """The 400 for documents that do not fit."""
        return ApiError(
            ErrorCode.ANSWER_TOO_LARGE,
            f"The response would contain more than {self._most} bytes of documents: "
            "request fewer hits, or select the fields you need.",
        )

    def take(self, size: int) -> None:
        """Use so many bytes.

        Raises:
            ApiError: 400 ``answer_too_large``.
        """
        self.check(size)
        self._left -= size
