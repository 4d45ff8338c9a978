"""The messages that a language model gets: the rules, the sources, and the question. Nothing about the visitor."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from app.services.asks.model import Message
from app.services.asks.retrieval import Source

_NUMBER = re.compile(r"[ \t]?\[\d+\]")
_TAG = re.compile(r"<(?=/?\s*(?:source|question)\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier question of the same visitor, with its answer."""

    question: str
    answer: str


def make_messages(
    site_name: str, instructions: str, sources: Sequence[Source], question: str, history: Sequence[Turn]
) -> list[Message]:
    """Return the chat for one question.

    Args:
        instructions: The site owner's instructions; ``""`` if there are none.
        history: Earlier questions and answers, oldest first.
    """
    wishes = f"- The owner of the website asks, within these rules: {_one_line(instructions)}" if instructions else ""
    rules = _template().replace("{site}", _one_line(site_name)).replace("{instructions}", wishes).strip()
    messages: list[Message] = [{"role": "system", "content": rules}]
    for turn in history:
        messages.append({"role": "user", "content": _as_data(turn.question)})
        # Its numbers belong to other sources.
        messages.append({"role": "assistant", "content": _as_data(_NUMBER.sub("", turn.answer))})
    numbered = "\n".join(_format(number, source) for number, source in enumerate(sources, 1))
    messages.append({"role": "user", "content": f"{numbered}\n<question>\n{_as_data(question)}\n</question>"})
    return messages


@cache
def _template() -> str:
    return files(__package__).joinpath("prompt.txt").read_text(encoding="utf-8")


def _format(number: int, source: Source) -> str:
    title = _as_data(_one_line(source.title)).replace('"', "'")
    return f'<source number="{number}" title="{title}">\n{_as_data(source.text)}\n</source>'


def _as_data(text: str) -> str:
    """``"</source>" -> "< /source>"``: text of a page cannot end its source."""
    return _TAG.sub("< ", text)


def _one_line(text: str) -> str:
    return " ".join(text.split())
