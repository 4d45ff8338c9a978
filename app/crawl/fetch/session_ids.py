"""Session IDs in URLs, which differ for each visitor, although the page is the same."""

from __future__ import annotations

import re
from urllib.parse import unquote_plus

_PROGRAM_NAME = re.compile(
    r"(?:j|php|asp|net|cf)sess(?:ion)?id[a-z]*|cfid|cftoken|(?:ec|gx|mod|osc|xtc)sid|zenid|force_sid|___sid|"
    r"sap-(?:sessionid|contextid)|bv_sessionid|wosid|viewstate"
)
"""Names that only programs give to parameters, always with a session ID."""
_NAME = re.compile(r"s|sid|[a-z]*[_-]?sess(?:ion)?[_-]?(?:id|key|token)?")
"""Names of parameters whose value must look like a session ID, since a conference's sessions have IDs, too."""
_VALUE = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9]{16,}|[0-9A-Fa-f]{16,}")
_IN_PATH = re.compile(
    r";(?:[a-z]*sess(?:ion)?_?id|sid)=[^/;]*"  # Servlets, PHP.
    r"|/(?:\((?:[A-Z]\([0-9a-z]{20,}\))+\)|\([0-9a-z]{24}\)|[SAF]\([0-9a-z]{20,}\))(?=/|$)",  # ASP.NET.
    re.IGNORECASE,
)


def without_session_ids(path: str) -> str:
    """Remove session IDs from the path of a URL: ``"/one;jsessionid=1" -> "/one"``."""
    return _IN_PATH.sub("", path) if ";" in path or "(" in path else path


def is_session_id(parameter: str) -> bool:
    """Whether a parameter of a query, such as ``"PHPSESSID=1"``, is a session ID."""
    name, _, value = unquote_plus(parameter).partition("=")
    name = name.lower()
    return bool(_PROGRAM_NAME.fullmatch(name) or (_NAME.fullmatch(name) and _VALUE.fullmatch(value)))
