"""Hits in Meilisearch's format: selected fields, ``_formatted``, ``_matchesPosition``.

Engines mark matches with two tags that no document can contain (documents have no NUL), so that matches can be located,
and are not confused with text that looks like a tag.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from app.services.search.budget import ResponseBudget
from app.services.search.encoding import without_custom_sections
from backends.base import Hit
from backends.query import FieldKind, FieldKinds, Highlight
from backends.sections import SECTIONS, SectionHit
from backends.servers.highlighter import crop_window
from backends.standard_fields import STANDARD_FIELDS

_OPEN, _CLOSE = "\0<", "\0>"
EVERY = "*"
_LEAST_POSITION = len('{"start":0,"length":1}')


@dataclass(frozen=True, slots=True)
class HitShape:
    """The requested format of hits.

    Attributes:
        retrieved: Fields of the hit; ``*`` for all.
        highlighted: Fields with marked matches; ``*`` for all retrieved fields.
        cropped: Maps fields to the lengths of their crops in words, at least 1.
        pre_tag, post_tag, crop_marker: As in :class:`backends.query.Highlight`.
        positions: Whether to return the positions of matches.
    """

    retrieved: Collection[str] = (EVERY,)
    highlighted: Collection[str] = ()
    cropped: Mapping[str, int] = field(default_factory=dict)
    pre_tag: str = "<em>"
    post_tag: str = "</em>"
    crop_marker: str = "…"
    positions: bool = False
    has_formatted: bool = False

    @classmethod
    def of(cls, parameters: Mapping[str, Any], kinds: FieldKinds) -> HitShape:
        """Return the format that a request's checked parameters describe."""
        highlighted = frozenset(parameters["attributesToHighlight"])
        crops = parameters["attributesToCrop"]
        retrieved = parameters["attributesToRetrieve"]
        known_fields = {EVERY, *STANDARD_FIELDS, *kinds}
        return cls(
            retrieved=(EVERY,) if EVERY in retrieved else frozenset(retrieved),
            highlighted=highlighted,
            cropped=_crops(crops, parameters["cropLength"], kinds, retrieved),
            pre_tag=parameters["highlightPreTag"],
            post_tag=parameters["highlightPostTag"],
            crop_marker=parameters["cropMarker"],
            positions=parameters["showMatchesPosition"],
            has_formatted=any(
                name in known_fields for name in (*highlighted, *(crop.partition(":")[0] for crop in crops))
            ),
        )

    @property
    def returned_fields(self) -> frozenset[str] | None:
        """The fields of hits, or ``None`` for all."""
        return None if EVERY in self.retrieved else frozenset(self.retrieved)

    def highlight(self) -> Highlight | None:
        """Return the highlighting for the engine, or ``None``."""
        if not (self.has_formatted or self.positions):
            return None
        return Highlight(
            pre_tag=_OPEN,
            post_tag=_CLOSE,
            escape=False,
            fields=(EVERY,) if self.positions else tuple(self.highlighted),
            crop_fields={} if self.positions else self.cropped,
            crop_marker=self.crop_marker,
            only_fields=None if self.positions or EVERY in self.retrieved else self._formatted_fields(),
        )

    def encode(self, hit: Hit, budget: ResponseBudget) -> bytes:
        """Encode a hit as JSON, and spend its size.

        Raises:
            ApiError: 400 if it exceeds ``budget``; if even its minimum size does, before it is encoded.
        """
        extra: dict[str, Any] = {}
        if hit.formatted is not None:
            # A match has a character, so a text has no more matches than bytes. Usually that settles it.
            if not budget.fits(len(orjson.dumps(hit.formatted)) * (self._tag_bytes + self._position_bytes)):
                budget.check(self._min_size(hit.formatted))
            if self.has_formatted:
                extra["_formatted"] = self._formatted(hit.formatted)
            if self.positions:
                extra["_matchesPosition"] = _positions(hit.formatted)
        encoded = hit.json
        if hit.sections is not None:
            encoded = without_custom_sections(hit)
            extra[SECTIONS] = [self._section(section) for section in hit.sections]
        # The stored JSON is passed on unchanged: decoding and encoding it would take longer than the rest of the
        # response.
        if extra:
            encoded = encoded[:-1] + (b"," if len(encoded) > 2 else b"") + orjson.dumps(extra)[1:]
        budget.spend(len(encoded))
        return encoded

    def _section(self, section: SectionHit) -> dict[str, Any]:
        encoded = section.as_json()
        if section.formatted is not None:
            del encoded["_formatted"]
        if section.formatted is not None and self.has_formatted:
            tags = (self.pre_tag, self.post_tag) if self.highlighted else ("", "")
            encoded["_formatted"] = {
                name: text.replace(_OPEN, tags[0]).replace(_CLOSE, tags[1]) for name, text in section.formatted.items()
            }
        return encoded

    @property
    def _tag_bytes(self) -> int:
        return len(self.pre_tag) + len(self.post_tag)

    @property
    def _position_bytes(self) -> int:
        return _LEAST_POSITION if self.positions else 0

    def _min_size(self, marked: Mapping[str, Any]) -> int:
        """Return the minimum size of tags and positions in bytes. A text may consist entirely of matches."""
        size = 0
        for name, value in marked.items():
            matches = sum(
                text.count(_OPEN) for text in (value if isinstance(value, list | tuple) else (value,))
                if isinstance(text, str)
            )  # fmt: skip
            size += matches * (self._position_bytes + (self._tag_bytes if self._is_tagged(name) else 0))
        return size

    def _is_tagged(self, name: str) -> bool:
        if not self.has_formatted or (self.positions and name in self.cropped):
            return False
        if EVERY in self.highlighted:
            return EVERY in self.retrieved or name in self.retrieved
        return name in self.highlighted

    def _formatted_fields(self) -> frozenset[str]:
        return frozenset({*self.retrieved, *self.highlighted, *self.cropped})

    def _formatted(self, marked: Mapping[str, Any]) -> dict[str, Any]:
        fields = self._formatted_fields()
        return {
            name: self._value(name, value)
            for name, value in marked.items()
            if EVERY in self.retrieved or name in fields
        }

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [self._text(name, _as_text(item), crop=False) for item in value]
        return self._text(name, _as_text(value), crop=True)

    def _text(self, name: str, text: str, *, crop: bool) -> str:
        if "\0" not in text and not (self.positions and name in self.cropped):
            return text
        if self.positions and crop and name in self.cropped:
            text = _crop(text, self.cropped[name], self.crop_marker)
        marked = name in self.highlighted or EVERY in self.highlighted
        pre, post = (self.pre_tag, self.post_tag) if marked else ("", "")
        return text.replace(_OPEN, pre).replace(_CLOSE, post)


def _crops(crops: Sequence[str], default: int, kinds: FieldKinds, retrieved: Collection[str]) -> dict[str, int]:
    """Convert ``content``, ``content:20``, and ``*`` to fields and lengths. List items are not cropped."""
    texts = [*STANDARD_FIELDS, *(name for name, field_kinds in kinds.items() if FieldKind.STRING in field_kinds)]
    lengths: dict[str, int] = {}
    for entry in crops:
        name, _, length = entry.rpartition(":")
        if not name:
            name, length = entry, ""
        words = min(int(length), 1_000_000) if length.isascii() and length.isdigit() and len(length) < 10 else default
        cropped_names = [text for text in texts if EVERY in retrieved or text in retrieved] if name == EVERY else [name]
        lengths |= dict.fromkeys((text for text in cropped_names if text in texts), words)
    return {name: words for name, words in lengths.items() if words > 0}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _pieces(marked: str) -> list[tuple[str, bool]]:
    """``"a <b>c" -> [("a ", False), ("b", True), ("c", False)]``, with ``<`` and ``>`` as the tags."""
    first, *others = marked.split("\0")
    return [(first, False), *((piece[1:], piece[0] == _OPEN[1]) for piece in others)]


def _spans(marked: str, measure: Callable[[str], int]) -> list[tuple[int, int]]:
    """Return the start and end of each match in the text without tags."""
    spans: list[tuple[int, int]] = []
    offset = 0
    for piece, is_match in _pieces(marked):
        end = offset + measure(piece)
        if is_match:
            spans.append((offset, end))
        offset = end
    return spans


def _crop(marked: str, words: int, marker: str) -> str:
    """Crop a marked text around its best matches."""
    text = "".join(piece for piece, _ in _pieces(marked))
    spans = _spans(marked, len)
    start, end = crop_window(text, spans, words)
    parts = [marker] if start else []
    offset = start
    for first, last in spans:
        if offset <= first and last <= end:
            parts += [text[offset:first], _OPEN, text[first:last], _CLOSE]
            offset = last
    parts.append(text[offset:end])
    if end < len(text):
        parts.append(marker)
    return "".join(parts)


def _positions(marked: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Map fields to the positions of their matches in bytes."""
    positions: dict[str, list[dict[str, Any]]] = {}
    for name, value in marked.items():
        matches: list[dict[str, Any]] = []
        if isinstance(value, str):
            matches = _matches(value)
        elif isinstance(value, list | tuple):
            matches = [
                {**match, "indices": [index]}
                for index, item in enumerate(value)
                if isinstance(item, str)
                for match in _matches(item)
            ]
        if matches:
            positions[name] = matches
    return positions


def _matches(marked: str) -> list[dict[str, Any]]:
    if "\0" not in marked:
        return []
    return [{"start": start, "length": end - start} for start, end in _spans(marked, lambda text: len(text.encode()))]
