"""Selectors of DocSearch's scraper, as those of a source and its rules for fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from app.crawl.sources.checks import is_css
from app.crawl.sources.docsearch_parts import EVERYWHERE, NAMES, Plan, read_object, read_texts
from app.errors import field_error
from schemas.validation.field_rules import name_problem

MAX_SELECTOR_LENGTH = 500
MAX_SELECTORS = 100
"""Selectors of a set that are looked at."""

_LEVELS = tuple(f"lvl{number}" for number in range(7))
_TEXTS = ("text", "content")
_USED = frozenset(("selector", "type", "global", "default_value"))
_HEADING = re.compile(r"\bh[1-6]\b[^\s>+~]*$")
_TITLE = re.compile(r"\bh1\b[^\s>+~]*$")


class DocSearchSelectors:
    """Reads the sets of selectors of one configuration."""

    def __init__(self, config: Mapping[str, Any], plan: Plan):
        self._config = config
        self._plan = plan
        self._sets: dict[str, tuple[dict[str, str], list[dict[str, Any]]]] = {}

    def read(self, key: str, origin: str) -> tuple[dict[str, str], list[dict[str, Any]]]:
        """The selectors of a source and its rules for fields, by the key of a set; what has no counterpart is noted.

        Args:
            origin: The entry of ``start_urls`` that names the key.

        Raises:
            ApiError: 400 for what is malformed.
        """
        given = read_object(self._config.get("selectors", {}), "selectors")
        named = {name: each for name, each in given.items() if _is_set(each)}
        if key not in named and key != "default":
            self._plan.ignore(f"{origin}.selectors_key")
        path = f"selectors.{key}" if key in named else "selectors"
        if path not in self._sets:
            chosen = named[key] if key in named else {name: given[name] for name in given if name not in named}
            self._plan.ignore(*(f"{path}.{name}" for name in islice(chosen, MAX_SELECTORS, None)))
            self._sets[path] = self._read_set(path, dict(islice(chosen.items(), MAX_SELECTORS)))
        return self._sets[path]

    def _read_set(self, path: str, given: Mapping[str, Any]) -> tuple[dict[str, str], list[dict[str, Any]]]:
        css = {name: self._css(each, f"{path}.{name}", name) for name, each in given.items()}
        defaults = {name: each.get("default_value") for name, each in given.items() if isinstance(each, dict)}
        title = _title_level(given, css)
        rules: list[dict[str, Any]] = []
        content: dict[str, str] = {}
        for name, selector in css.items():
            default = defaults.get(name)
            field_name = "section" if name == "lvl0" and title != "lvl0" else NAMES.get(name, name)
            if field_name in (*_LEVELS, *_TEXTS):
                if default:
                    self._plan.ignore(f"{path}.{name}.default_value")
                content |= {name: selector} if selector and name != title else {}
                if selector and name not in (title, *_TEXTS) and not all(map(_HEADING.search, _parts(selector))):
                    self._plan.ignore(f"{path}.{name}")
            elif name_problem(field_name) is not None:
                self._plan.ignore(f"{path}.{name}")
            else:
                rules += [{"name": field_name, "selector": selector}] if selector else []
                if isinstance(default, str) and default.strip():
                    rules.append({"path": EVERYWHERE, "set": {field_name: default}})
        selectors = {"title": css[title]} if title is not None else {}
        if any(name in content for name in _TEXTS):
            first = sorted(content, key=lambda name: name not in _TEXTS)
            selectors["content"] = self._joined([(content[name], f"{path}.{name}") for name in first])
        excluded = read_texts(self._config.get("selectors_exclude", []), "selectors_exclude")
        removed = [(each, f"selectors_exclude[{position}]") for position, each in enumerate(excluded)]
        return selectors | {"remove": self._joined(removed)}, rules

    def _css(self, given: Any, path: str, name: str) -> str:
        """A selector, ``""`` if it is none that can be used."""
        entry = given if isinstance(given, dict) else {"selector": given}
        selector = entry.get("selector", "")
        if not isinstance(selector, str):
            raise field_error(path, "type", "must be a string or an object with selector")
        self._plan.ignore_others(entry, _USED, path)
        selector = selector.strip()
        if selector and (entry.get("type") == "xpath" or len(selector) > MAX_SELECTOR_LENGTH or not is_css(selector)):
            # The language of a page is read without being told where it is.
            if NAMES.get(name, name) != "lang":
                self._plan.ignore(path)
            return ""
        return selector

    def _joined(self, selectors: Iterable[tuple[str, str]]) -> str:
        """Selectors as one, as far as they have room in it, each with its path."""
        joined = ""
        for selector, path in selectors:
            longer = f"{joined}, {selector}" if joined else selector
            if len(longer) <= MAX_SELECTOR_LENGTH and is_css(selector):
                joined = longer
            else:
                self._plan.ignore(path)
        return joined


def _is_set(given: Any) -> bool:
    return isinstance(given, dict) and "selector" not in given and not given.keys().isdisjoint((*_LEVELS, *_TEXTS))


def _parts(selector: str) -> list[str]:
    return [part.strip() for part in selector.split(",")]


def _title_level(given: Mapping[str, Any], css: Mapping[str, str]) -> str | None:
    """The level that is a page's title: the first that selects ``h1``, else the first of two that is not global."""
    levels = [name for name in _LEVELS if css.get(name)]
    plain = [name for name in levels[:2] if not (isinstance(given[name], dict) and given[name].get("global"))]
    headings = [name for name in levels if any(map(_TITLE.search, _parts(css[name])))]
    return next(iter([*headings, *plain]), None)
