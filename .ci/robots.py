"""Google's public tests of robots.txt, run against our rules: `.ci/robots.py FOLDER`, where FOLDER holds
`google-robotstxt` (robots_test.cc) and `google-robotstxt-spec-test` (*.textproto) as their repositories have them."""

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

LEFT_OUT = {
    "GoogleOnly_SystemTest": "asks without an address or a name, which the crawler always has",
    "ID_VerifyValidUserAgentsToObey": "asks which names a crawler may have; ours has one",
    "GoogleOnly_LineTooLong": "cuts lines at 16 KiB, which RFC 9309 does not ask for",
    "GoogleOnly_IndexHTMLisDirectory": "takes index.html for its folder, which RFC 9309 does not ask for",
    "ID_LinesNumbersAreCountedCorrectly": "asks what its own parser counts; line ends are in the other suite",
    "ID_UTF8ByteOrderMarkIsSkipped": "asks what its own parser counts; byte order marks are in the other suite",
    "ID_NonStandardLineExample_Sitemap": "asks its own parser; tests/crawl/fetch/test_robots.py has ours",
    "TestGetPathParamsQuery": "tests a function of its own",
    "TestMaybeEscapePattern": "tests a function of its own",
    "index-page.textproto": "takes index.html for its folder, which RFC 9309 does not ask for",
}
"""Tests and files of which nothing applies, and why."""

TOKEN = re.compile(r"[A-Za-z_-]+")

STRING = r'"(?:\\.|[^"\\])*"'
STRINGS = rf"{STRING}(?:\s*{STRING})*"


class Case(NamedTuple):
    """One question: may this agent fetch this address?"""

    place: str
    robots_txt: bytes
    agent: str
    url: str
    allowed: bool


def inapplicable(case: Case) -> str | None:
    """Why a question does not apply, if it does not."""
    if not TOKEN.fullmatch(case.agent):
        return "asks with a name that no crawler may have"
    if not case.url or not case.url.isascii():
        return "asks for an address that is none, or is not percent-encoded, as the crawler's are"
    if b"%62%61%7A" in case.robots_txt:
        return "keeps percent-encoded letters apart from letters, which RFC 9309 decodes (section 2.2.2)"
    if case.url.endswith("/robots.txt"):
        return "asks for robots.txt itself, which RFC 9309 allows whatever it says"
    return None


def text_of(literals: str) -> bytes:
    """The bytes of adjacent string literals."""
    found = re.findall(STRING, literals)
    return b"".join(literal[1:-1].encode().decode("unicode_escape").encode("latin-1") for literal in found)


def textproto_cases(path: Path) -> Iterator[Case]:
    """The questions of a file of the specification's tests."""
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
    """The questions of the C++ tests, but of those left out.

    Raises:
        ValueError: There is one that was not understood.
    """
    _, *tests = re.split(r"(?m)^TEST\(RobotsUnittest, ", path.read_text())
    for test in tests:
        name = test.partition(")")[0]
        if name in LEFT_OUT:
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
            raise ValueError(f"{name}: {understood} of {questions} questions were understood")


def main(folder: Path) -> int:
    """Ask all questions; gives how many were answered otherwise."""
    spec = folder / "google-robotstxt-spec-test/src/main/resources/CTC"
    cases = list(unit_test_cases(folder / "google-robotstxt/robots_test.cc"))
    for path in sorted(spec.glob("*/*.textproto")):
        if path.name not in LEFT_OUT:
            cases += textproto_cases(path)
    passed, failed = 0, 0
    left_out: Counter[str] = Counter()
    for case in cases:
        if (why := inapplicable(case)) is not None:
            left_out[why] += 1
        elif RobotsRules.read(case.robots_txt, case.agent).allows(normalize_url(case.url)) == case.allowed:
            passed += 1
        else:
            failed += 1
            print(f"FAILED: {case}")
    for name, why in LEFT_OUT.items():
        print(f"left out: {name}: {why}")
    for why, count in left_out.items():
        print(f"left out: {count} questions: {why}")
    print(f"{passed} of Google's questions about robots.txt are answered as expected, {failed} otherwise.")
    return failed or not passed


if __name__ == "__main__":
    sys.exit(1 if main(Path(sys.argv[1])) else 0)
