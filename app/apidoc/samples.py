"""Sample programs that send one request, in curl, Python, JavaScript, and PHP, with placeholders for keys."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from markupsafe import Markup, escape

PRIVATE_KEY = "svc_prv_…"
"""Placeholder for a private key in the guides."""

ANY_KEY = "YOUR_KEY"
"""Placeholder for the reader's key in samples."""

SITE = "YOUR_SITE"
"""Placeholder for the reader's site ID in samples."""

INDEX = "YOUR_INDEX"
"""Placeholder for the site's index name in samples."""


def mark_placeholders(code: str) -> Markup:
    """Return code as HTML with marked placeholders, which the page's script replaces with the reader's key and site."""
    marked = escape(code)
    for placeholder in (PRIVATE_KEY, ANY_KEY, SITE, INDEX):
        marked = marked.replace(placeholder, Markup('<span class="own">{}</span>').format(placeholder))
    return marked


LANGUAGES: Mapping[str, str] = {"curl": "curl", "python": "Python", "javascript": "JavaScript", "php": "PHP"}
"""Maps languages to their titles, in display order."""

_LINE = 88
"""Maximum length of a line that contains a whole value; longer values are split across lines."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request.

    Attributes:
        method: HTTP method in capitals.
        url: URL without a query.
        query: Query parameters, not yet encoded.
        headers: Additional headers.
        token: Placeholder for the key; empty for requests without a key.
        body: A JSON value, or text if ``content_type`` is not JSON; ``None`` for no body.
        content_type: Content type of the body.
        returns_json: Whether the response is JSON.
    """

    method: str
    url: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    token: str = ""
    body: Any = None
    content_type: str = "application/json"
    returns_json: bool = True

    @property
    def is_json(self) -> bool:
        return self.body is not None and self.content_type == "application/json"

    @property
    def address(self) -> str:
        """The URL with its query."""
        return self.url + ("?" + urlencode(self.query, quote_via=quote) if self.query else "")

    @property
    def all_headers(self) -> dict[str, str]:
        """All headers that the sample must set explicitly."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        if self.body is not None:
            headers["Content-Type"] = self.content_type
        return headers | dict(self.headers)


@dataclass(frozen=True, slots=True)
class _Syntax:
    """Syntax of literals in a programming language."""

    text: Callable[[str], str]
    true: str
    false: str
    null: str
    opening: str = "{"
    closing: str = "}"
    colon: str = ": "
    empty: str = "{}"
    step: int = 4


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _php_quoted(text: str) -> str:
    """Return a PHP string literal without interpolation: in single quotes, unless it has control characters."""
    if any(ord(character) < 32 for character in text):
        return json.dumps(text, ensure_ascii=False).replace("$", "\\$")
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_PYTHON = _Syntax(_quoted, "True", "False", "None")
_JAVASCRIPT = _Syntax(_quoted, "true", "false", "null", step=2)
_PHP = _Syntax(_php_quoted, "true", "false", "null", "[", "]", " => ", "new stdClass()")


def write_samples(call: Call) -> dict[str, str]:
    """Return sample programs for the call, by language."""
    return {"curl": _curl(call), "python": _python(call), "javascript": _javascript(call), "php": _php(call)}


def pretty_json(value: Any) -> str:
    """Format a value as JSON: on one line if it is short, otherwise indented."""
    flat = json.dumps(value, ensure_ascii=False)
    return flat if len(flat) <= _LINE else json.dumps(value, ensure_ascii=False, indent=2)


def _write(value: Any, syntax: _Syntax, indent: int, used: int = 0) -> str:
    """Format a value as a literal. Its first line starts after ``used`` characters."""
    if isinstance(value, str):
        return syntax.text(value)
    if value is None or isinstance(value, bool):
        return syntax.null if value is None else syntax.true if value else syntax.false
    if not isinstance(value, (dict, list)):
        return json.dumps(value)
    if isinstance(value, dict) and not value:
        return syntax.empty
    flat = _flat(value, syntax)
    if indent + used + len(flat) <= _LINE:
        return flat
    deeper = indent + syntax.step
    if isinstance(value, dict):
        members = {syntax.text(name) + syntax.colon: member for name, member in value.items()}
        lines = [name + _write(member, syntax, deeper, len(name) + 1) for name, member in members.items()]
        opening, closing = syntax.opening, syntax.closing
    else:
        lines = [_write(member, syntax, deeper, 1) for member in value]
        opening, closing = "[", "]"
    return f"{opening}\n" + "".join(f"{' ' * deeper}{line},\n" for line in lines) + " " * indent + closing


def _flat(value: dict[str, Any] | list[Any], syntax: _Syntax) -> str:
    if isinstance(value, dict):
        members = (f"{syntax.text(name)}{syntax.colon}{_write_flat(part, syntax)}" for name, part in value.items())
        return syntax.opening + ", ".join(members) + syntax.closing
    return "[" + ", ".join(_write_flat(part, syntax) for part in value) + "]"


def _write_flat(value: Any, syntax: _Syntax) -> str:
    return _flat(value, syntax) if isinstance(value, (dict, list)) and value else _write(value, syntax, 0)


def _shell(text: str) -> str:
    """``it's -> 'it'\\''s'``"""
    return "'" + text.replace("'", "'\\''") + "'"


def _curl(call: Call) -> str:
    usual = "GET" if call.body is None else "POST"
    parts = ["curl" + ("" if call.method == usual else f" -X {call.method}") + f" {_shell(call.address)}"]
    parts += [f"-H {_shell(f'{name}: {value}')}" for name, value in call.all_headers.items()]
    if call.body is not None:
        body = pretty_json(call.body) if call.is_json else call.body
        parts.append(f"{'-d' if call.is_json else '--data-binary'} {_shell(body)}")
    return " \\\n  ".join(parts)


def _python(call: Call) -> str:
    arguments = [_quoted(call.url)]
    if call.query:
        arguments.append("params=" + _write(dict(call.query), _PYTHON, 4, 8))
    # The library names the content type of JSON itself.
    headers = {name: value for name, value in call.all_headers.items() if name != "Content-Type" or not call.is_json}
    if headers:
        arguments.append("headers=" + _write(headers, _PYTHON, 4, 9))
    if call.is_json:
        arguments.append("json=" + _write(call.body, _PYTHON, 4, 6))
    elif call.body is not None:
        arguments.append(f"data={_quoted(call.body)}.encode()")
    arguments.append("timeout=30")
    lines = "".join(f"    {argument},\n" for argument in arguments)
    output = "response.json()" if call.returns_json else "response.text"
    return (
        f"import requests\n\nresponse = requests.{call.method.lower()}(\n{lines})\n"
        f"response.raise_for_status()\nprint({output})"
    )


def _javascript(call: Call) -> str:
    options = [] if call.method == "GET" else [f'method: "{call.method}"']
    if call.all_headers:
        options.append("headers: " + _write(call.all_headers, _JAVASCRIPT, 2, 10))
    if call.is_json:
        options.append(f"body: JSON.stringify({_write(call.body, _JAVASCRIPT, 2, 24)})")
    elif call.body is not None:
        options.append("body: " + _quoted(call.body))
    lines = "".join(f"  {option},\n" for option in options)
    output = "JSON.stringify(await response.json(), null, 2)" if call.returns_json else "await response.text()"
    return (
        f"const response = await fetch({_quoted(call.address)}" + (f", {{\n{lines}}}" if options else "") + ");\n"
        f"if (!response.ok) throw new Error(await response.text());\nconsole.log({output});"
    )


def _php(call: Call) -> str:
    headers: Sequence[str] = [f"{name}: {value}" for name, value in call.all_headers.items()]
    options = {"method": _php_quoted(call.method), "header": _write(headers, _PHP, 4, 13)}
    if call.is_json:
        options["content"] = f"json_encode({_write(call.body, _PHP, 4, 28)})"
    elif call.body is not None:
        options["content"] = _php_quoted(call.body)
    options["ignore_errors"] = "true"
    lines = "".join(f"    '{name}' => {value},\n" for name, value in options.items() if value != "[]")
    output = "json_decode($response, true)" if call.returns_json else "$response"
    return (
        f"<?php\n$context = stream_context_create(['http' => [\n{lines}]]);\n"
        f"$response = file_get_contents({_php_quoted(call.address)}, false, $context);\n"
        f"print_r({output});"
    )
