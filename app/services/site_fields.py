"""The custom fields of a site's documents, and the kinds of their values.

A site stores them in ``field_kinds``; searches can filter, sort, and count by these fields. Writing documents only adds
fields. Rebuilding the index, or removing the last document, deletes fields that no document has anymore.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.errors import ApiError, Detail, ErrorCode, validation_error
from app.models import Site
from backends.query import FieldKind, FieldKinds
from schemas.validation.documents import ValidDocument, custom_field_kinds


class SeenKinds:
    """Collects custom fields and their kinds from documents.

    Attributes:
        kinds: All kinds collected so far.
    """

    def __init__(self, known_fields: FieldKinds | None = None):
        self.kinds: dict[str, frozenset[FieldKind]] = dict(known_fields or {})

    def add(self, kinds: Mapping[str, FieldKind]) -> None:
        """Add the kinds of one document's fields."""
        for name, kind in kinds.items():
            field_kinds = self.kinds.get(name, frozenset())
            if kind not in field_kinds:
                self.kinds[name] = field_kinds | {kind}

    def add_stored(self, documents: Iterable[Mapping[str, Any]]) -> None:
        """Add the fields of stored documents."""
        for fields in documents:
            self.add(custom_field_kinds(fields))


def kinds_of(site: Site) -> FieldKinds:
    """Return the kinds of a site's fields, for the engines."""
    return {name: frozenset(FieldKind(kind) for kind in kinds) for name, kinds in site.field_kinds.items()}


def remember(site: Site, kinds: FieldKinds) -> bool:
    """Store ``kinds`` as the kinds of a site's fields. Returns whether they changed."""
    changed = kinds != kinds_of(site)
    if changed:
        site.field_kinds = {name: sorted(kind.value for kind in field_kinds) for name, field_kinds in kinds.items()}
    return changed


def forget_if_empty(site: Site) -> bool:
    """Delete the fields of a site without documents. Returns whether there were any."""
    return not site.document_count and remember(site, {})


@dataclass(frozen=True, slots=True)
class RejectedDocument:
    """A document with more new fields than the site may have.

    Attributes:
        index: Its index among the documents written together.
        field: Its first field beyond the limit.
    """

    index: int
    field: str


class TooManySiteFields(ApiError):
    """A 400 because documents exceed the site's limit of distinct custom fields. Names the first such document.

    Attributes:
        rejected: All documents that exceed the limit; the others fit.
    """

    def __init__(self, documents: Sequence[ValidDocument], rejected: Sequence[RejectedDocument], max_fields: int):
        self.rejected = tuple(rejected)
        first = documents[rejected[0].index]
        path = f"documents[{first.position}]"
        message = f"{path} {self.predicate(rejected[0], max_fields)}"
        extra = {"index": first.position, "id": first.id}
        details = validation_error([Detail(path, "too_many_fields", message, extra)])
        super().__init__(ErrorCode.VALIDATION_FAILED, details.message, details=details.details)

    @staticmethod
    def predicate(rejected: RejectedDocument, max_fields: int) -> str:
        """Return the end of the error message, which follows the document's name: ``has the new field …``."""
        return f"has the new field {rejected.field!r}, but a site can have at most {max_fields} distinct custom fields"


def find_rejected(
    documents: Iterable[ValidDocument], known_fields: Iterable[str], max_fields: int
) -> list[RejectedDocument]:
    """Return the documents that exceed the limit. Fields of earlier documents within the limit count toward it."""
    names = set(known_fields)
    rejected: list[RejectedDocument] = []
    for index, document in enumerate(documents):
        new_fields = [name for name in document.kinds if name not in names]
        if new_fields and len(names) + len(new_fields) > max_fields:
            rejected.append(RejectedDocument(index, new_fields[max(0, max_fields - len(names))]))
        else:
            names.update(new_fields)
    return rejected
