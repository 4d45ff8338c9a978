"""Validating URLs of sites, and the rules that set custom fields of a source's pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from backends.standard_fields import STANDARD_FIELDS
from schemas.validation.documents import FIELD_NAME
from schemas.validation.problems import REQUIRED, Problem, printable_name


def domain_of(url: str) -> str:
    """Return the host of an absolute http(s) URL: lower case, punycode, without port.

    Raises:
        ValueError: ``url`` is not an absolute http or https URL with a host.
    """
    if any(character.isspace() or ord(character) < 32 for character in url):
        raise ValueError("white space")
    parts = urlsplit(url)
    if parts.scheme.lower() not in {"http", "https"}:
        raise ValueError("scheme")
    _ = parts.port  # Raises on a port that is no port.
    host = (parts.hostname or "").rstrip(".")
    if not host:
        raise ValueError("no host")
    if ":" in host:
        return host
    if not host.isascii():
        host = host.encode("idna").decode("ascii")
    host = host.lower()
    labels = host.split(".")
    if len(host) > 253 or any(not label or len(label) > 63 for label in labels):
        raise ValueError("host")
    if not all(c.isalnum() or c in "-_." for c in host):
        raise ValueError("host")
    return host


def complete_url(typed: str) -> str:
    """Add ``https://`` to a typed URL if only the scheme is missing; return anything else unchanged.

    Text with a user part, such as an email address, or without a dot in its host is not completed.
    """
    return f"https://{match['address']}" if (match := _BARE_ADDRESS.fullmatch(typed.strip())) else typed


_BARE_ADDRESS = re.compile(r"(?://)?(?P<address>[^\s/:@?#\\]+\.[^\s/:@?#\\]+(?::\d{1,5})?(?:[/?#]\S*)?)")


MAX_RULES = 50
MAX_SET_FIELDS = 20
MAX_SET_LENGTH = 1_000
RULE_SOURCES = ("selector", "json_ld", "meta")
"""Parts of a page that a rule can read; each rule reads one."""

SEGMENT = re.compile(r"\{([A-Za-z][A-Za-z0-9_-]{0,63})\}", re.ASCII)
"""Named placeholder for one segment of a path."""

_FORMS = Problem("must have path and set, or name and one of selector, json_ld, and meta", "invalid")


def name_problem(name: str) -> Problem | None:
    """Return the problem with the field name in a rule, or ``None``."""
    if not FIELD_NAME.fullmatch(name):
        return Problem("must be a letter, then letters, digits, _, and -, at most 64 characters", "invalid_name")
    if name in STANDARD_FIELDS:
        return Problem(f"must be a custom field; {name} is read from the page", "invalid_name")
    return None


def path_problem(path: str) -> Problem | None:
    """Return the problem with the placeholders in a path pattern, or ``None``."""
    if re.search(r"[{}]", SEGMENT.sub("", path)):
        return Problem("must have a name in braces, such as {version}", "invalid")
    if any(len(SEGMENT.findall(segment)) > 1 for segment in re.split(r"[/*]", path)):
        return Problem("must have at most one pair of braces between two slashes", "invalid")
    names = SEGMENT.findall(path)
    return Problem("must not repeat a name", "invalid") if len(set(names)) < len(names) else None


def set_problems(templates: Mapping[Any, Any]) -> dict[str, list[Problem]]:
    """Return the problems with the fields that a rule sets, by field name."""
    return {
        printable_name(str(name)): [problem]
        for name, text in templates.items()
        if (problem := name_problem(str(name)) or _text_problem(text)) is not None
    }


def _text_problem(text: object) -> Problem | None:
    if not isinstance(text, str):
        return Problem("must be a string", "type")
    if not text.strip():
        return Problem("must not be empty", "too_short")
    if len(text) > MAX_SET_LENGTH:
        return Problem(f"must have at most {MAX_SET_LENGTH} characters", "too_long")
    if "\x00" in text or (not text.isascii() and text.encode("utf-8", "ignore").decode() != text):
        return Problem("must not contain the NUL character or lone surrogates", "invalid")
    return None


def rule_problems(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return the problems with a rule whose members are valid, by member name; ``_schema`` for the rule as a whole."""
    by_address = "path" in rule or "set" in rule
    sources = [source for source in RULE_SOURCES if source in rule]
    if by_address:
        if rule.keys() - {"path", "set"}:
            return {"_schema": [_FORMS]}
        missing = {name: [REQUIRED] for name in ("path", "set") if name not in rule}
        return missing or _unknown_segments(rule["path"], rule["set"])
    if len(sources) != 1:
        return {"_schema": [_FORMS]}
    if "name" not in rule:
        return {"name": [REQUIRED]}
    if "attribute" in rule and "selector" not in rule:
        return {"attribute": [Problem("must be used together with selector", "invalid")]}
    return {}


def _unknown_segments(path: str, templates: Mapping[str, str]) -> dict[str, Any]:
    known_segments = set(SEGMENT.findall(path))
    unknown = {
        name: [Problem(f"must not use {{{other}}}, which is not in the path", "invalid")]
        for name, text in templates.items()
        for other in SEGMENT.findall(text)
        if other not in known_segments
    }
    return {"set": unknown} if unknown else {}
