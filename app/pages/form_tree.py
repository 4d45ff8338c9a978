"""Forms of rows: a field is named by its place, such as ``rules.3.when.query``. Rows are numbered, in their order."""

from __future__ import annotations

from werkzeug.datastructures import MultiDict

MAX_DEPTH = 5
"""Most parts of a field's name."""


class FormTree:
    """Fields of a form whose names begin alike."""

    def __init__(self) -> None:
        self._values: dict[str, list[str]] = {}
        self._children: dict[str, FormTree] = {}

    @classmethod
    def of(cls, form: MultiDict[str, str]) -> FormTree:
        """All fields of a form."""
        root = cls()
        for name in form:
            *path, leaf = name.split(".", MAX_DEPTH)
            node = root
            for part in path:
                node = node._children.setdefault(part, cls())
            node._values[leaf] = [text.replace("\r\n", "\n").strip() for text in form.getlist(name)]
        return root

    def text(self, name: str) -> str:
        """The text of a field, of several with this name the last; empty if there is none."""
        return self._values.get(name, [""])[-1]

    def texts(self, name: str) -> list[str]:
        """The texts of fields with this name, each text once."""
        return list(dict.fromkeys(text for text in self._values.get(name, ()) if text))

    def child(self, name: str) -> FormTree:
        """The fields below a name."""
        return self._children.get(name, FormTree())

    def rows(self, name: str) -> list[FormTree]:
        """The numbered rows below a name, in order."""
        children = self.child(name)._children
        numbered = [key for key in children if key.isascii() and key.isdigit() and len(key) < 16]
        return [children[key] for key in sorted(numbered, key=int)]


def number_of(text: str) -> float | str:
    """The number that a text is; the text itself if it is none, so that validation tells."""
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number
