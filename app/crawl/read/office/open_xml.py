"""Parts and properties of Microsoft's office files (Office Open XML): how they name others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from posixpath import dirname, join, normpath
from urllib.parse import unquote

from app.crawl.read.bounds import cut_line
from app.crawl.read.office.archive import TEXT, Archive, broken_file

MAIN = "officeDocument"
PROPERTIES = "core-properties"

_ROOT_RELATIONSHIPS = "_rels/.rels"
KINDS = {"document": "docx", "presentation": "pptx", "workbook": "xlsx"}
"""The root element of the main part to the kind of the file."""


@dataclass(frozen=True, slots=True)
class Relationship:
    """A reference from one part to another.

    Attributes:
        type: The last word of its type: ``slide``, ``styles``.
        target: The other part's name in the archive.
    """

    type: str
    target: str


def relationships(archive: Archive, part: str = "") -> dict[str, Relationship]:
    """The parts that a part, or the whole file, names, by id."""
    folder, _, name = part.rpartition("/")
    listed = join(folder, "_rels", f"{name}.rels") if part else _ROOT_RELATIONSHIPS
    return {
        attributes.get("Id", ""): Relationship(
            attributes.get("Type", "").rpartition("/")[2], resolve(part, attributes.get("Target", ""))
        )
        for tag, attributes in archive.elements(listed)
        if tag == "Relationship" and attributes.get("TargetMode") != "External"
    }


def resolve(part: str, target: str) -> str:
    """The name of the part that another one means by an address."""
    path = unquote(target.partition("#")[0])
    return path.lstrip("/") if path.startswith("/") else normpath(join(dirname(part), path))


def targets(archive: Archive, part: str, kind: str) -> Iterator[str]:
    """The names of the parts that a part names as a kind of thing."""
    return (found.target for found in relationships(archive, part).values() if found.type == kind)


def main_part(archive: Archive) -> tuple[str, str]:
    """The kind of a file, and the name of its main part.

    Raises:
        NotIndexed: It is no office file.
    """
    for name in targets(archive, "", MAIN):
        for tag, _ in archive.elements(name):
            if tag in KINDS:
                return KINDS[tag], name
            break
    raise broken_file()


def is_on(attributes: dict[str, str], name: str = "val") -> bool:
    """Tell whether an attribute that is yes or no, and yes where it is missing, says yes."""
    return attributes.get(name, "1") not in ("0", "false", "off")


def properties(archive: Archive, part: str) -> dict[str, str]:
    """The texts of a part of properties, by the names of their elements; of several the first, of authors all.

    An element ``meta`` of an e-book has the name of the property that it is.
    """
    found: dict[str, list[str]] = {}
    pieces: list[str] = []
    name = ""
    for tag, value in archive.elements(part):
        if tag == TEXT:
            pieces.append(value)
            continue
        if tag.startswith("/"):
            if text := cut_line("".join(pieces)):
                found.setdefault(name, []).append(text)
        else:
            name = value.get("property", "").rpartition(":")[2] or tag if tag == "meta" else tag
        pieces.clear()
    return {name: ", ".join(texts) if name == "creator" else texts[0] for name, texts in found.items()}
