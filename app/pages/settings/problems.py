"""Problems of search settings, each at the place where it stands in the form of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.errors import Detail

_NAMES = {
    "half_life_days": "half-life",
    "ids": "pages",
    "from": "from",
    "url": "address",
}


@dataclass(frozen=True, slots=True)
class Problems:
    """Place, such as ``rules[3].when.query``, to sentences."""

    found: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, details: Sequence[Detail]) -> Problems:
        """The problems that validation found, in settings alone or beside others."""
        found: dict[str, dict[str, None]] = {}
        for detail in details:
            found.setdefault(detail.field.removeprefix("settings."), {})[detail.message] = None
        return cls({field: [_sentence(field, text) for text in texts] for field, texts in found.items()})

    def at(self, place: str) -> list[str]:
        """The sentences about a place and what is in it."""
        return [
            sentence
            for field, sentences in self.found.items()
            if field == place or field.startswith((f"{place}.", f"{place}["))
            for sentence in sentences
        ]

    def at_all(self, place: str) -> list[str]:
        """The sentences about a list as a whole, or a field."""
        return list(self.found.get(place, ()))


def _sentence(field: str, message: str) -> str:
    """``rules[3].when.query must …`` as a sentence about what its row calls so."""
    last = field.rpartition(".")[2]
    name, _, rest = last.partition("[")
    predicate = message.removeprefix(last).removeprefix(name).strip()
    if rest and rest.rstrip("]").isdigit() and "." in field:
        subject = f"Item {int(rest.rstrip(']')) + 1} of {_NAMES.get(name, name)}"
    else:
        subject = "This" if rest or "." not in field else _NAMES.get(name, name.replace("_", " ")).capitalize()
    return f"{subject} {predicate}."
