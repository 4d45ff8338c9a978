"""The text that a model writes, made safe while it arrives: plain text with valid source numbers.

No link, image, or HTML element of the model's making is left. A URL stays only if one of the sources contains it. Code
between backticks keeps its angle brackets and square brackets, since it is shown as code. Outside code, headings and
emphasis lose their marks, and all items of lists begin with a hyphen.
"""

from __future__ import annotations

import re

NO_ANSWER = "NO ANSWER"
"""What the prompt tells the model to write if the sources do not answer the question."""
MAX_UNIT = 600
"""Length of text after which it is cut between two words, even if its sentence has not ended."""
MAX_WORD = 2_000
"""Length of text after which it is cut anywhere."""

_UNIT_END = re.compile(r"\n|[.!?:;](?:\[[\d, ]+\])*[ \t]+|[。！？](?:\[[\d, ]+\])*")
_FENCE = re.compile(r"[ \t]*```")
_CODE = re.compile(r"(`+[^`\n]+`+)")
_LINE_START = re.compile(r"([ \t]*)(?:(#{1,6})|[*•])[ \t]+")
_EMPHASIS = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]*[^\s*])\*(?![\w*])")
_LINK = re.compile(r"(!?)\[([^\[\]]*)\]\((?:[^()\n]|\([^()\n]*\))*\)")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>|<!--.*?-->|<![^<>]*>|<\?[^<>]*>", re.DOTALL)
_TAG_START = re.compile(r"<(?=[A-Za-z/!?]|\Z)")
_LINK_MIDDLE = re.compile(r"\](?=\()|(?<!\d)\](?=:)")
_NUMBERS = re.compile(r"[ \t]?\[(\d+(?:[ \t]*,[ \t]*\d+)*)\]")
_URL = re.compile(
    r"(?:\b(?:https?|ftps?|file|wss?):/{1,3}|\b(?:javascript|vbscript|mailto|data|tel):(?=[^\s])|\bwww\.)[^\s<>`]*",
    re.IGNORECASE,
)
_URL_ENDS = ".,;:!?)]}'\"*"


class PlainText:
    """The text of one answer.

    Args:
        sources: Number of sources.
        known_text: Text of all sources.
    """

    def __init__(self, sources: int, known_text: str):
        self._has_source = False
        self._sources = sources
        self._known_text = known_text
        self._pending = ""
        self._held = ""
        self._in_fence = False
        self._at_line_start = True

    def add(self, piece: str) -> str:
        """Add a piece of the model's text, and return the text that is now safe and complete; often ``""``."""
        self._pending += piece
        units = []
        while (end := self._find_end()) is not None:
            units.append(self._clean(self._pending[:end]))
            self._pending = self._pending[end:]
        return self._release("".join(units))

    def end(self) -> str:
        """Return the rest of the text; ``""`` if no text of the answer has the number of a source."""
        rest, self._pending = self._clean(self._pending), ""
        return self._release(rest).rstrip()

    def _release(self, text: str) -> str:
        self._held += text
        # Some models explain what is missing, with the numbers of sources.
        if not self._has_source or self._held.lstrip().startswith(NO_ANSWER):
            return ""
        text, self._held = self._held, ""
        return text

    def _find_end(self) -> int | None:
        """Return the end of the first complete unit: a line, or outside code a sentence."""
        pending = self._pending
        for match in _UNIT_END.finditer(pending):
            if match[0] == "\n":
                return match.end()
            # A sentence that ends with the buffer may go on with a source number.
            if not self._is_code(pending[: match.end()]) and match.end() < len(pending):
                return match.end()
        if len(pending) > MAX_WORD:
            return len(pending)
        if len(pending) > MAX_UNIT and " " in pending and not self._is_code(pending):
            return pending.rindex(" ") + 1
        return None

    def _is_code(self, text: str) -> bool:
        """Whether code is open at the end of a text within one line, or the text is in a link or tag."""
        if self._in_fence or _FENCE.match(text):
            return True
        return text.count("`") % 2 == 1 or text.rfind("[") > text.rfind("]") or text.rfind("<") > text.rfind(">")

    def _clean(self, unit: str) -> str:
        was_at_line_start = self._at_line_start
        is_fence = was_at_line_start and bool(_FENCE.match(unit))
        self._at_line_start = unit.endswith("\n") or (self._at_line_start and not unit)
        if is_fence:
            self._in_fence = not self._in_fence
        if is_fence or self._in_fence:
            return _URL.sub(self._keep_known_url, unit)
        if was_at_line_start and (start := _LINE_START.match(unit)):
            unit = _line_start(start) + unit[start.end() :]
        parts = _CODE.split(unit)
        # Every second part is code.
        return "".join(
            _URL.sub(self._keep_known_url, part) if at % 2 else self._clean_text(part) for at, part in enumerate(parts)
        )

    def _clean_text(self, text: str) -> str:
        # Repeated because removing ``<b>`` from ``<scr<b>ipt>`` leaves another tag.
        while (changed := self._remove_markup(text)) != text:
            text = changed
        # Last, so that nothing that is removed can put the halves of a tag or a link together.
        return _LINK_MIDDLE.sub("] ", _TAG_START.sub("< ", text))

    def _remove_markup(self, text: str) -> str:
        text = _EMPHASIS.sub(r"\1", _LINK.sub(_link_text, text).replace("**", ""))
        text = _NUMBERS.sub(self._keep_valid_numbers, text)
        return _TAG.sub("", _URL.sub(self._keep_known_url, text))

    def _keep_known_url(self, match: re.Match[str]) -> str:
        url = match[0].rstrip(_URL_ENDS)
        return match[0] if url in self._known_text else match[0][len(url) :]

    def _keep_valid_numbers(self, match: re.Match[str]) -> str:
        numbers = dict.fromkeys(int(number) for number in match[1].split(",") if len(number.strip()) < 4)
        valid = [number for number in numbers if 1 <= number <= self._sources]
        if not valid:
            return ""
        self._has_source = True
        space = match[0][: match[0].index("[")]
        return space + "".join(f"[{number}]" for number in valid)


def _line_start(match: re.Match[str]) -> str:
    """Return the beginning of a heading or of an item as the box shows it: ``"  * " -> "  - "``, ``"## " -> ""``."""
    return "" if match[2] else f"{match[1]}- "


def _link_text(match: re.Match[str]) -> str:
    if match[1]:
        return ""
    return f"[{match[2]}]" if match[2].isdigit() else match[2]
