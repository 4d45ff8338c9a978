"""Queries are taken apart for server engines as for our own."""

from __future__ import annotations

from backends.servers.tokenizer import query_parts


def test_server_engines_are_told_the_same() -> None:
    def together(text: str) -> list[tuple[str, ...]]:
        return [part.words for part in query_parts(text) if part.phrase]

    assert together('צה"ל וארה״ב') == [("צה", "ל"), ("וארה", "ב")]
    assert together('"צה"ל בארה״ב" חוק') == [("צה", "ל", "בארה", "ב")]
    assert together("“opening hours” now") == [("opening", "hours")]
