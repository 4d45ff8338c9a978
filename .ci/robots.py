"""Google's public tests of robots.txt, run against our rules: `.ci/robots.py FOLDER`, where FOLDER contains
checkouts of `google-robotstxt` (robots_test.cc) and `google-robotstxt-spec-test` (*.textproto)."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

from app.crawl.fetch.addresses import normalize_url
from app.crawl.fetch.robots import RobotsRules

SKIPPED_TESTS = {
    "GoogleOnly_SystemTest": "has no URL or user agent, which the crawler always has",
    "ID_VerifyValidUserAgentsToObey": "checks which names a crawler may have; ours has one fixed name",
    "GoogleOnly_LineTooLong": "truncates lines at 16 KiB, which RFC 9309 does not require",
    "GoogleOnly_IndexHTMLisDirectory": "treats index.html as its folder, which RFC 9309 does not require",
    "ID_LinesNumbersAreCountedCorrectly": "tests statistics of its parser; the other suite covers line endings",
    "ID_UTF8ByteOrderMarkIsSkipped": "tests statistics of its parser; the other suite covers byte order marks",
    "ID_NonStandardLineExample_Sitemap": "tests its parser; tests/crawl/fetch/test_robots.py tests ours",
    "TestGetPathParamsQuery": "tests an internal function",
    "TestMaybeEscapePattern": "tests an internal function",
    "index-page.textproto": "treats index.html as its folder, which RFC 9309 does not require",
}
"""Tests and files that do not apply at all, and why."""

TOKEN = re.compile(r"[A-Za-z_-]+")

STRING = r'"(?:\\.|[^"\\])*"'
STRINGS = rf"{STRING}(?:\s*{STRING})*"


class Case(NamedTuple):
    """Whether a user agent may fetch a URL, according to a test."""

    place: str
    robots_txt: bytes
    agent: str
    url: str
    allowed: bool


def inapplicable(case: Case) -> str | None:
    """Return why a case does not apply, or ``None`` if it does."""
    if not TOKEN.fullmatch(case.agent):
        return "the user agent is not a valid crawler name"
    if not case.url or not case.url.isascii():
        return "the URL is empty or not percent-encoded, unlike the crawler's URLs"
    if b"%62%61%7A" in case.robots_txt:
        return "distinguishes letters from percent-encoded letters, which RFC 9309 decodes (section 2.2.2)"
    if case.url.endswith("/robots.txt"):
        return "the URL is robots.txt itself, which RFC 9309 always allows"
    return None


def text_of(literals: str) -> bytes:
    """Return the bytes of adjacent string literals."""
    found = re.findall(STRING, literals)
    return b"".join(literal[1:-1].encode().decode("unicode_escape").encode("latin-1") for literal in found)


def textproto_cases(path: Path) -> Iterator[Case]:
    """Yield the cases of a file of the specification's tests."""
    text = re.sub(r"(?m)^\s*#.*$", "", path.read_text())
    robots_txt, url, agent = b"", "", ""
    for match in re.finditer(
        rf"(robotstxt|testurl|useragent|additional_explanation):\s*({STRINGS})|outcome:\s*(\w+)", text
    ):
        match match[1]:
            case "robotstxt":
                robots_txt = text_of(match[2])
            case "testurl":
                url = text_of(match[2]).decode()
            case "useragent":
                agent = text_of(match[2]).decode()
            case None:
                yield Case(path.name, robots_txt, agent, url, match[3] == "ALLOWED")


ASSIGNMENT = rf"(\w+)\s*=\s*({STRINGS})\s*;"
QUESTION = rf"EXPECT_(TRUE|FALSE)\(\s*IsUserAgentAllowed\(\s*({STRINGS}|\w+),\s*({STRINGS}|\w+),\s*({STRINGS}|\w+)\)\)"


def unit_test_cases(path: Path) -> Iterator[Case]:
    """Yield the cases of the C++ tests that apply.

    Raises:
        ValueError: A case could not be parsed.
    """
    _, *tests = re.split(r"(?m)^TEST\(RobotsUnittest, ", path.read_text())
    for test in tests:
        name = test.partition(")")[0]
        if name in SKIPPED_TESTS:
            continue
        values: dict[str, bytes] = {}
        understood = 0
        for match in re.finditer(f"{ASSIGNMENT}|{QUESTION}", test):
            if match[1]:
                values[match[1]] = text_of(match[2])
                continue
            understood += 1
            robots_txt, agent, url = (
                values[part] if part in values else text_of(part) for part in match.group(4, 5, 6)
            )
            yield Case(name, robots_txt, agent.decode(), url.decode(), match[3] == "TRUE")
        questions = test.count("IsUserAgentAllowed(")
        if understood != questions:
            raise ValueError(f"{name}: {understood} of {questions} cases could be parsed")


def main(folder: Path) -> int:
    """Check all cases. Returns the number of failures."""
    spec = folder / "google-robotstxt-spec-test/src/main/resources/CTC"
    cases = list(unit_test_cases(folder / "google-robotstxt/robots_test.cc"))
    for path in sorted(spec.glob("*/*.textproto")):
        if path.name not in SKIPPED_TESTS:
            cases += textproto_cases(path)
    passed, failed = 0, 0
    skipped: Counter[str] = Counter()
    for case in cases:
        if (why := inapplicable(case)) is not None:
            skipped[why] += 1
        elif RobotsRules.read(case.robots_txt, case.agent).allows(normalize_url(case.url)) == case.allowed:
            passed += 1
        else:
            failed += 1
            print(f"FAILED: {case}")
    for name, why in SKIPPED_TESTS.items():
        print(f"skipped: {name}: {why}")
    for why, count in skipped.items():
        print(f"skipped: {count} cases: {why}")
    print(f"{passed} of Google's cases for robots.txt passed, {failed} failed.")
    return failed or not passed


if __name__ == "__main__":
    sys.exit(1 if main(Path(sys.argv[1])) else 0)
