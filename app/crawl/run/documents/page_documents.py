"""The document that a page becomes, within the bounds of documents."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

from app.crawl.fetch.values import Page
from app.texts.sections import as_field
from backends.sections import SECTIONS, is_sections
from backends.standard_fields import REQUIRED_FIELDS
from schemas.validation.documents import (
    MAX_DOCUMENT_BYTES,
    MAX_FURTHER_FIELDS,
    MAX_ID_LENGTH,
    DocumentProblems,
    ValidDocument,
    read_document,
)

MAX_TITLE_LENGTH = 1_000
MAX_EXCERPT_LENGTH = 2_000
MAX_AUTHOR_LENGTH = 500
MAX_FIELD_LENGTH = 2_000

_CUT_ROOM = 64


def document_id(page: Page, address: str) -> str:
    """The id of a page: its own, or its address. What is too long for an id ends in a digest instead."""
    if page.id is not None and 0 < len(page.id) <= MAX_ID_LENGTH:
        return page.id
    if len(address) <= MAX_ID_LENGTH:
        return address
    digest = hashlib.sha256(address.encode()).hexdigest()
    return f"{address[: MAX_ID_LENGTH - len(digest) - 1]}#{digest}"


def make_document(
    page: Page, address: str, title: str, section: str | None = None, domain: str | None = None
) -> ValidDocument:
    """The document of a page. What is beyond the bounds of documents is cut or left out.

    Args:
        address: The page's own address.
        title: Without what the titles of its site share.
        section: By its address, if it names none itself.
        domain: The host of its address where pages tell theirs; what the page says itself goes first.
    """
    # The language is a field like those the page names itself, and those go first.
    further: dict[str, Any] = {"domain": domain} if domain else {}
    further |= dict(page.fields) | ({"lang": page.lang} if page.lang and "lang" not in page.fields else {})
    further |= {"section": section} if section else {}
    raw: dict[str, Any] = {
        "id": document_id(page, address),
        "title": title[:MAX_TITLE_LENGTH],
        "content": page.content,
        "url": address,
        "excerpt": (page.excerpt or "")[:MAX_EXCERPT_LENGTH] or None,
        "author": (page.author or "")[:MAX_AUTHOR_LENGTH] or None,
        "date": page.date,
    }
    if page.sections:
        raw[SECTIONS] = as_field(page.sections)
    raw |= {name: _bounded(value) for name, value in list(further.items())[:MAX_FURTHER_FIELDS] if name not in raw}
    raw = {name: _clean(value) for name, value in raw.items()}
    return _read(raw)


def _read(raw: dict[str, Any]) -> ValidDocument:
    """The document, without optional fields that are not valid."""
    try:
        return read_document(_cut(raw))
    except DocumentProblems as error:
        optional = {name for name, _ in error.problems} - {*REQUIRED_FIELDS, ""}
        if not optional:
            raise
        return read_document(_cut({name: value for name, value in raw.items() if name not in optional}))


def clean_title(title: str) -> str:
    """A title as it can be stored."""
    return str(_clean(title))[:MAX_TITLE_LENGTH]


def retitle(document: dict[str, Any], title: str, section: str | None = None) -> ValidDocument:
    """A stored document with another title.

    Args:
        section: By its address, empty if it has none any more; ``None`` keeps what it has.
    """
    changed = {**document, "title": _clean(title[:MAX_TITLE_LENGTH])}
    if section is not None:
        changed["section"] = _clean(section) or None
    return _read(changed)


def without_fields(document: ValidDocument, known: set[str]) -> ValidDocument:
    """A document without the further fields that its site does not know."""
    unknown = document.kinds.keys() - known
    return read_document({name: value for name, value in document.fields.items() if name not in unknown})


def _bounded(value: Any) -> Any:
    return value[:MAX_FIELD_LENGTH] if isinstance(value, str | list) else value


def _clean(value: Any) -> Any:
    """``value`` without what JSON or SQL cannot hold."""
    if isinstance(value, str):
        return value.encode("utf-8", "ignore").decode().replace("\x00", "")
    if isinstance(value, list):
        return [_clean(member) for member in value]
    if isinstance(value, dict):
        return {name: _clean(member) for name, member in value.items()}
    return value


def _cut(raw: dict[str, Any]) -> dict[str, Any]:
    size = len(orjson.dumps(raw))
    if size <= MAX_DOCUMENT_BYTES:
        return raw
    # A byte less of text is at least a byte less of JSON.
    text = raw["content"].encode()
    content = text[: max(0, len(text) - (size - MAX_DOCUMENT_BYTES) - _CUT_ROOM)].decode(errors="ignore")
    cut = {**raw, "content": content}
    if is_sections(raw.get(SECTIONS)):
        cut[SECTIONS] = [section for section in raw[SECTIONS] if section["start"] <= len(content)]
    return cut
