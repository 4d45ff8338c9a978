"""Session IDs in URLs, which differ for each visitor, although the page is the same."""

from __future__ import annotations

import re
from urllib.parse import unquote_plus

from ada_url import URL

_PROGRAM_NAME = re.compile(
    r"(?:j|php|asp|net|cf)sess(?:ion)?id[a-z]*|cfid|cftoken|(?:ec|gx|mod|osc|xtc)sid|zenid|force_sid|___sid|"
    r"sap-(?:sessionid|contextid)|bv_sessionid|wosid|viewstate"
)
"""Parameters that only contain session IDs: their names are those of programs."""
_NAME = re.compile(r"s|sid|[a-z]*[_-]?sess(?:ion)?[_-]?(?:id|key|token)?")
"""Parameters that contain a session ID if their value looks like one; a conference's sessions have IDs, too."""
_VALUE = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9]{16,}|[0-9A-Fa-f]{16,}")
_IN_PATH = re.compile(
    r";(?:[a-z]*sess(?:ion)?_?id|sid)=[^/;]*"  # Servlets, PHP.
    r"|/(?:\((?:[A-Z]\([0-9a-z]{20,}\))+\)|\([0-9a-z]{24}\)|[SAF]\([0-9a-z]{20,}\))(?=/|$)",  # ASP.NET.
    re.IGNORECASE,
)


def remove_session_ids(parsed: URL) -> None:
    """Remove session IDs from the path and the query of a URL."""
    path, query = parsed.pathname, parsed.search[1:]
    if (";" in path or "(" in path) and _IN_PATH.search(path):
        parsed.pathname = _IN_PATH.sub("", path)
    if query:
        parameters = query.split("&")
        kept = [parameter for parameter in parameters if not _is_session_id(parameter)]
        if len(kept) < len(parameters):
            parsed.search = "&".join(kept)


def _is_session_id(parameter: str) -> bool:
    name, _, value = unquote_plus(parameter).partition("=")
    name = name.lower()
    return bool(_PROGRAM_NAME.fullmatch(name) or (_NAME.fullmatch(name) and _VALUE.fullmatch(value)))
