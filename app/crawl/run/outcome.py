"""The outcome of an address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.crawl.run.frontier import Found
from schemas.validation.documents import ValidDocument


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an address.

    Attributes:
        status: ``indexed``, ``unchanged``, ``skipped`` or ``failed``; ``waiting`` puts it last.
        reason: Why it was not indexed.
        document: To be written.
        seen: The id of a document that stays as it is.
        gone: The id of the document that it was and is no more.
        text_digest: Of the text of a page that is indexed.
        page: What to keep of it, see :class:`~app.models.SourcePage`; ``None`` keeps what there is.
        forget: Whether what is known of it is forgotten.
        found: The addresses that it leads to.
    """

    url: str
    status: str
    reason: str | None = None
    document: ValidDocument | None = None
    seen: str | None = None
    gone: str | None = None
    text_digest: bytes | None = None
    page: Mapping[str, Any] | None = None
    forget: bool = False
    found: Sequence[Found] = ()
