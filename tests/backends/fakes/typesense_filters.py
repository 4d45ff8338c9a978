"""Filters of the fake Typesense: its syntax, its type errors, and its 404 for unknown fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import requests

from tests.backends.fakes.typesense_text import tokens

Test = Callable[[Mapping[str, Any]], bool]
_LEAF = re.compile(r"\s*([\w.\-]+)\s*:\s*(!=|>=|<=|=|>|<)?\s*")


class Refusal(Exception):
    """An error response of the server."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status
        self.message = message


class FilterParser:
    """Parses one ``filter_by``; ``fields`` are the fields of the collection, by name."""

    def __init__(self, text: str, fields: Mapping[str, Mapping[str, Any]], separators: Sequence[str]):
        self.text = text
        self.at = 0
        self.fields = fields
        self.separators = separators

    def parse(self) -> Test:
        test = self.either()
        if self.text[self.at :].strip():
            raise Refusal(400, "Could not parse the filter query.")
        return test

    def either(self) -> Test:
        tests = [self.both()]
        while self.accept("||"):
            tests.append(self.both())
        return lambda document: any(test(document) for test in tests)

    def both(self) -> Test:
        tests = [self.one()]
        while self.accept("&&"):
            tests.append(self.one())
        return lambda document: all(test(document) for test in tests)

    def one(self) -> Test:
        if self.accept("("):
            test = self.either()
            if not self.accept(")"):
                raise Refusal(400, "Could not parse the filter query.")
            return test
        match = _LEAF.match(self.text, self.at)
        if match is None:
            raise Refusal(400, "Could not parse the filter query.")
        self.at = match.end()
        return self.leaf(match[1], match[2] or "", self.values())

    def leaf(self, name: str, operator: str, values: list[str]) -> Test:
        if name == "id":
            if operator == "!=":
                raise Refusal(400, "Not equals filtering is not supported on the `id` field.")
            if not "".join(values).strip("` "):
                raise requests.exceptions.ReadTimeout("the server never answers for no id")
            return lambda document: document["id"] in values
        field = self.fields.get(name)
        if field is None or not field.get("index", True):
            raise Refusal(404, f"Could not find a filter field named `{name}` in the schema.")
        kind = field["type"].removesuffix("[]")
        if kind == "string":
            return self.text_test(name, operator, values)
        if kind == "bool":
            wanted = {value == "true" for value in values}
            return lambda d: bool({d[name]} & wanted) != (operator == "!=") if name in d else operator == "!="
        return self.number_test(name, operator, values, kind)

    def text_test(self, name: str, operator: str, values: list[str]) -> Test:
        wanted = [tokens(value, self.separators) for value in values]

        def test(document: Mapping[str, Any]) -> bool:
            there = document.get(name, [])
            have = [tokens(text, self.separators) for text in ([there] if isinstance(there, str) else there)]
            if operator in ("=", "!="):
                return any(words in have for words in wanted) == (operator == "=")
            return any(set(words) <= set(text) for words in wanted for text in have)

        return test

    def number_test(self, name: str, operator: str, values: list[str], kind: str) -> Test:
        def number(text: str) -> float:
            if kind == "int64" and re.fullmatch(r"[+-]?\d+", text) and not -(2**63) <= int(text) < 2**63:
                raise requests.exceptions.ReadTimeout("the server never answers for such a number")
            try:
                return int(text) if kind == "int64" else float(text)
            except ValueError:
                what = "an int64" if kind == "int64" else "a float"
                raise Refusal(400, f"Error with filter field `{name}`: Not {what}.") from None

        tests: list[Callable[[float], bool]] = []
        for value in values:
            low, dots, high = value.partition("..")
            if dots:
                first, last = number(low), number(high)
                tests.append(lambda x, first=first, last=last: first <= x <= last)
                continue
            bound = number(value)
            compare: dict[str, Callable[[float], bool]] = {
                "": lambda x, b=bound: x == b, "=": lambda x, b=bound: x == b, "!=": lambda x, b=bound: x == b,
                ">": lambda x, b=bound: x > b, ">=": lambda x, b=bound: x >= b,
                "<": lambda x, b=bound: x < b, "<=": lambda x, b=bound: x <= b,
            }  # fmt: skip
            tests.append(compare[operator])

        def run(document: Mapping[str, Any]) -> bool:
            there = document.get(name, [])
            have = there if isinstance(there, list) else [there]
            return any(test(x) for test in tests for x in have) != (operator == "!=")

        return run

    def values(self) -> list[str]:
        rest = self.text[self.at :]
        if rest.startswith("["):
            end = rest.find("]")
            if end < 0:
                raise Refusal(400, "Could not parse the filter query.")
            self.at += end + 1
            return [part.strip().strip("`") for part in rest[1:end].split(",")]
        match = re.match(r"`([^`]*)`|([^&|()]+)", rest)
        if match is None:
            raise Refusal(400, "Could not parse the filter query.")
        self.at += match.end()
        return [match[1] if match[1] is not None else match[2].strip()]

    def accept(self, mark: str) -> bool:
        rest = self.text[self.at :]
        blank = len(rest) - len(rest.lstrip())
        if rest[blank:].startswith(mark):
            self.at += blank + len(mark)
            return True
        return False
