"""Titles of files: whether a person wrote them, and the file name that a server sends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

_PROGRAMS = (
    r"adobe \w+|coreldraw|indesign|microsoft (?:excel|office|powerpoint|publisher|word)|openoffice|"
    r"quarkxpress(?: ?\((?:r|tm)\)|®|™)?"
)
_UNTITLED = (
    r"(?:untitled|unbenannt|ohne (?:namen|titel)|sans titre|senza titolo|sin título|sem título|zonder titel|namnlös|"
    r"bez nazwy|без названия|無題|无标题|no title)(?:[\s-]*(?:design|document|dokument|presentation))?"
)
_NUMBERED = (
    "book|dia|diapositiva|diapositive|document|documento|dokument|drawing|folie|foliennummer|layout|mappe|page|página|"
    "print|publication|publikation|scan|scanned document|seite|sheet|slayt|slide|snímek|tabelle|workbook|スライド|"
    "プレゼンテーション|文档|文書"
)
_PRESENTATION = (
    r"(?:apresentação do|presentación de|presentazione(?: standard)? di|présentation|prezentacja programu) powerpoint|"
    r"powerpoint[\s-]*(?:presentatie|presentation|präsentation|プレゼンテーション|演示文稿)"
)
_FOLDER = r"file:/+.*/|[a-z]:[\\/]|\\\\|/(?:home|tmp|users|var|volumes)/"
_EXTENSIONS = (
    "afpub|cdr|doc[mx]?|dot[mx]?|eps|id[am]l|ind[bdt]|od[pst]|p65|pdf|pm[6d]|pp[st][mx]?|psd|pub|qx[bdp]|rtf|sla|tex|"
    "vsdx?|wp[ds]|xl[st][bmx]?"
)
_DEFAULT = re.compile(
    rf"(?:{_PROGRAMS})(?:\s?(?:c[cs])?\s?[0-9.]+)?\s*[-–:].*"  # "Microsoft Word - fees.doc"
    rf"|(?:{_UNTITLED}|{_NUMBERED})[\s_-]*\(?[0-9]*\)?"  # "Untitled-1", "Slide 1"
    rf"|{_PRESENTATION}"
    rf"|(?:{_FOLDER})[^\s/\\].*"  # "C:\\Users\\x\\fees.doc"
    rf"|.*[^\s.]\.(?:{_EXTENSIONS})",  # "fees.indd"
    re.IGNORECASE | re.DOTALL,
)
_EXTENDED = re.compile(r"filename\*\s*=\s*([\w-]+)'[^']*'([^;\s]+)", re.IGNORECASE)
_PLAIN = re.compile(r'filename\s*=\s*(?:"([^"]*)"|([^;"]+))', re.IGNORECASE)
_EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,5}$")


def meaningful_title(title: str) -> str:
    """Return a title if a person wrote it; empty if it is a program's default title, a path, or a file name."""
    return "" if _DEFAULT.fullmatch(title.strip()) else title


def file_name(url: str) -> str:
    """Return the file name in a URL, or its host.

    ``"https://example.com/a/fees%20today.pdf" -> "fees today.pdf"``
    """
    parts = urlsplit(url)
    return unquote(PurePosixPath(parts.path).name) or parts.netloc


def name_of(url: str, headers: Mapping[str, str]) -> str:
    """Return a title for a file without one: the file name that the server sends, or the name in its URL.

    ``"/download?id=5", {"content-disposition": 'attachment; filename="Crane tariff.pdf"'} -> "Crane tariff"``
    """
    url_name, header_name = file_name(url), meaningful_title(_sent_name(headers.get("content-disposition", "")))
    return url_name if header_name in url_name else header_name


def _sent_name(disposition: str) -> str:
    """``"inline; filename*=UTF-8''Geb%C3%BChren.pdf" -> "Gebühren"``"""
    if match := _EXTENDED.search(disposition):
        name = _decoded(match[2], match[1])
    elif match := _PLAIN.search(disposition):
        name = unquote(match[1] or match[2] or "")
    else:
        return ""
    name = name.strip().replace("\\", "/").rpartition("/")[2]
    return "" if name.startswith(("=?", ".")) else _EXTENSION.sub("", name)


def _decoded(value: str, encoding: str) -> str:
    try:
        return unquote(value, encoding)
    except LookupError:
        return unquote(value)
