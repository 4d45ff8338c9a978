"""Faults of a search engine, in the words of this service."""

from __future__ import annotations

from typing import Literal


class BackendError(Exception):
    """Base of everything a search backend raises on purpose.

    The message is ours and may be shown to a caller; what the engine itself said is kept
    in ``__cause__`` and never in the message.
    """


class BackendUnavailable(BackendError):
    """The engine cannot do its work now: refused, reset, too slow, overloaded or answering nonsense.

    Args:
        message: What happened, in our words.
        retry_after: Seconds after which trying again makes sense.
    """

    def __init__(self, message: str = "The search engine is unavailable.", *, retry_after: int = 5):
        super().__init__(message)
        self.retry_after = retry_after


class ReplyTooLarge(BackendUnavailable):
    """The engine's reply is larger than anybody reads. To a search: its hits are too many, or too large."""

    def __init__(self) -> None:
        super().__init__("The search engine gave an answer that is too large to be read.")


class UnreadableReply(BackendUnavailable):
    """The engine's reply is not of the form it must have."""

    def __init__(self) -> None:
        super().__init__("The search engine gave an answer that cannot be read.")


class BackendMisconfigured(BackendUnavailable):
    """The engine refuses our own credentials or speaks another version; an operator must act."""


RejectedPart = Literal["filters", "sort", "facets", "distinct", "q"]


class BackendRejected(BackendError):
    """The caller's query cannot be run: the caller must change it.

    Args:
        part: The parameter that is wrong.
        message: What is wrong with it, in our words.
        position: Offset of the error in the parameter, in characters from 0, where known.
    """

    def __init__(self, part: RejectedPart, message: str, *, position: int | None = None):
        super().__init__(message)
        self.part = part
        self.position = position


class IndexNotFound(BackendError):
    """The engine does not have the named index."""

    def __init__(self, index: str):
        super().__init__(f"The index {index} does not exist.")
        self.index = index
