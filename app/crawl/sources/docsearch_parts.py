"""The plan that a configuration of DocSearch's scraper becomes, and reading its values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.errors import field_error

MAX_ITEMS = 2_000
"""Items of a list in a configuration."""
NAMES = {"language": "lang"}
"""What DocSearch calls a field of ours."""
EVERYWHERE = "/*"


@dataclass(frozen=True, slots=True)
class PlannedSource:
    """A source that a configuration asks for.

    Attributes:
        origin: Where in the configuration it comes from, such as ``start_urls[0]``.
        values: Its fields, as whoever creates a source sends them.
    """

    origin: str
    values: dict[str, Any]


@dataclass(slots=True)
class Plan:
    """The sources that a configuration asks for, and the paths in it of what has no counterpart."""

    sources: list[PlannedSource] = field(default_factory=list)
    ignored: dict[str, None] = field(default_factory=dict)

    def ignore(self, *paths: str) -> None:
        """Note what has no counterpart."""
        self.ignored.update(dict.fromkeys(paths))

    def ignore_others(self, given: Mapping[str, Any], used: Iterable[str], path: str = "") -> None:
        """Note the members that are not ``used``; of settings, each."""
        for name in (name for name in given if name not in used):
            place = f"{path}.{name}" if path else name
            parts = given[name] if name == "custom_settings" and isinstance(given[name], dict) else {}
            self.ignore(*([f"{place}.{part}" for part in parts] or [place]))


def read_list(given: Any, path: str) -> list[Any]:
    """A list, or a value that stands for a list of one.

    Raises:
        ApiError: 400 for one that is too long.
    """
    items = given if isinstance(given, list) else [given]
    if len(items) > MAX_ITEMS:
        raise field_error(path, "too_long", f"must have at most {MAX_ITEMS} items")
    return items


def read_texts(given: Any, path: str) -> list[str]:
    """A list of strings, or one of them.

    Raises:
        ApiError: 400.
    """
    texts = read_list(given, path)
    if not all(isinstance(text, str) for text in texts):
        raise field_error(path, "type", "must be a string or a list of strings")
    return texts


def read_object(given: Any, path: str) -> dict[str, Any]:
    """A JSON object.

    Raises:
        ApiError: 400.
    """
    if not isinstance(given, dict):
        raise field_error(path, "type", "must be a JSON object")
    return given
