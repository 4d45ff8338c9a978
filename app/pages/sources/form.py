"""The form of a source: its fields, the conversion between a source and form texts, and problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flask import request
from werkzeug.datastructures import MultiDict

from app.crawl.run.preview import Preview
from app.errors import ApiError, Detail, field_error
from app.pages.forms import FormTree, Problems
from app.pages.sources.reports import explain_reason
from app.runtime import runtime
from app.web.parsing import read_form_body
from app.wording import counted
from schemas.request_headers import MAX_HEADERS
from schemas.sources import MAX_GLOBS, SCHEDULES, SELECTORS

CHOICES: Mapping[str, tuple[str, str]] = {
    "website": ("A website", "Start at a URL and follow its links and sitemaps."),
    "sitemap": ("A sitemap", "Crawl exactly the pages that a sitemap lists."),
    "feed": ("A feed", "Crawl the pages that an RSS, Atom, or JSON feed links to."),
    "wordpress": ("WordPress", "Read posts and pages through the WordPress API."),
    "file": ("A file", "Import an export of a CMS or another search service."),
    "api": ("The API", "Send pages from your server."),
}
"""Maps each way to add content to its label and description."""

SCHEDULE_NAMES = {"none": "Only when I start it", "hourly": "Every hour", "daily": "Every day", "weekly": "Every week"}

_SELECTORS = ("selector_content", "selector_title", "selector_remove")
_MORE = ("include", "exclude", *_SELECTORS, "render", "max_pages", "max_depth", "headers")
_RENDER_NAMES = {"auto": "When a page needs it", "always": "On all pages", "never": "Never"}


_OPTIONS: Mapping[str, Sequence[str]] = {"schedule": SCHEDULES, "render": tuple(_RENDER_NAMES)}
_DEFAULT_RENDER = "auto"


def describe_fields(kind: str) -> list[tuple[str, str, str, str]]:
    """Return the name, type, label, and help text of each form field for a kind of source."""
    address = {
        "website": "Where to start, such as www.example.com.",
        "sitemap": "The URL of the sitemap or sitemap index, such as www.example.com/sitemap.xml.",
        "feed": "The URL of the feed, such as www.example.com/feed.xml. Pages removed from the feed stay searchable.",
        "wordpress": "The URL of the blog, such as www.example.com/blog.",
    }[kind]
    fields = [
        ("url", "url", "URL", address),
        ("schedule", "select", "Schedule", "How often to look for new, changed, and deleted pages."),
        (
            "include",
            "textarea",
            "Include only",
            "One pattern per line, such as /docs/*. Leave empty to include all pages.",
        ),
        ("exclude", "textarea", "Exclude", "One pattern per line, such as /private/* or *?print=*."),
        (
            "selector_content",
            "text",
            "Content selector",
            "CSS selector of the elements that contain the text, such as main. Leave empty to detect them.",
        ),
        (
            "selector_title",
            "text",
            "Title selector",
            "CSS selector of the title, such as h1. Leave empty to use the page’s title.",
        ),
        ("selector_remove", "text", "Remove selector", "CSS selector of elements to ignore, such as .advert, nav."),
        (
            "render",
            "select",
            "JavaScript",
            "Whether a browser runs the scripts of pages before they are read. When needed: on pages that "
            "arrive with scripts and little text.",
        ),
        ("max_pages", "text", "Maximum pages", "Maximum number of pages from this source. Leave empty for no limit."),
        (
            "max_depth",
            "text",
            "Maximum depth",
            "Maximum links from the start page. Leave empty for no limit.",
        ),
        (
            "headers",
            "textarea",
            "Request headers",
            "One per line, such as Cookie: staging=yes, for sites behind a password. "
            "They are sent only to this host and won’t be shown again.",
        ),
    ]
    skipped_fields = {"wordpress": (*_SELECTORS, "render"), "website": ()}.get(kind, ())
    depth = () if kind == "website" else ("max_depth",)
    browser = () if runtime().settings.crawl_browser else ("render",)
    return [field for field in fields if field[0] not in (*skipped_fields, *depth, *browser)]


def read_form_texts() -> dict[str, str]:
    """Return the texts of the request's form, with Unix line endings."""
    return {name: text.replace("\r\n", "\n") for name, text in read_form_body(request).items()}


def read_rules() -> dict[str, Any]:
    """Return the rules for page fields, if the request's form contains them."""
    form = read_form_body(request)
    return {"fields": read_rows(form)} if "fields_shown" in form else {}


def field_rows_of(rules: Sequence[Mapping[str, Any]], error: ApiError | None) -> dict[str, Any]:
    problems = Problems.of([] if error is None else error.details)
    return {"field_rows": write_rows(rules), "places": RULE_SOURCES, "rule_problems": problems}


def form_fields(kind: str, values: Mapping[str, str], error: ApiError | None) -> list[dict[str, Any]]:
    """Return the fields of the form with their values and problems, for templates."""
    problems = {} if error is None else explain(error.details, values)
    return [
        {
            "name": name,
            "type": type,
            "label": label,
            "help": help,
            "required": name == "url",
            "max_length": None,
            "value": values.get(name, ""),
            "options": _OPTIONS.get(name, ()),
            "problems": problems.get(name, []),
        }
        for name, type, label, help in describe_fields(kind)
    ]


def grouped_fields(fields: list[dict[str, Any]]) -> dict[str, Any]:
    """Group a form's fields for templates: basic fields, and others that are collapsed unless one has a value."""
    more = [field for field in fields if field["name"] in _MORE]
    return {
        "fields": fields,
        "basic": [field for field in fields if field["name"] not in _MORE],
        "more": more,
        "more_open": any(field["value"] not in ("", _DEFAULT_RENDER) or field["problems"] for field in more),
        "option_labels": SCHEDULE_NAMES | _RENDER_NAMES,
    }


def preview_values(preview: Preview | None) -> dict[str, Any]:
    if preview is None:
        return {"document": None, "explanation": None}
    return {
        "document": preview.document,
        "text_sections": [] if preview.document is None else _split_text(preview.document),
        "explanation": None if preview.reason is None else explain_reason(preview.reason),
    }


MAX_PREVIEWED_CHARACTERS = 3000


def _split_text(document: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Return the headings and paragraphs of a previewed page's text. Text before the first heading has none."""
    content = str(document["content"])[:MAX_PREVIEWED_CHARACTERS]
    if len(content) < len(str(document["content"])):
        content += "…"
    starts = [(section["start"], str(section["title"])) for section in document.get("sections") or ()]
    ends = [*(start for start, _ in starts), len(content)]
    parts = []
    for (start, title), end in zip([(0, ""), *starts], ends, strict=True):
        text = content[start:end].strip().removeprefix(title)
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if lines or (title and start < len(content)):
            parts.append((title, lines))
    return parts


Form = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Line:
    """A nonblank line and its number, from 1, counting blank lines."""

    number: int
    text: str


def lines_of(text: str) -> list[Line]:
    """Return the nonblank lines of a field."""
    return [Line(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]


_GLOBS = ("include", "exclude")
_NUMBERS = ("max_pages", "max_depth")


def write_source(source: Any) -> dict[str, str]:
    """Convert a source to form values, without its request headers, which are secret."""
    return {
        "url": source.url,
        "schedule": source.schedule,
        "render": source.render,
        **{name: "\n".join(getattr(source, name)) for name in _GLOBS},
        **{f"selector_{name}": source.selectors.get(name, "") for name in SELECTORS},
        **{name: "" if getattr(source, name) is None else str(getattr(source, name)) for name in _NUMBERS},
        "headers": "",
    }


def read_source(form: Form) -> dict[str, Any]:
    """Return the fields of a source from the form's texts, not validated yet.

    Raises:
        ApiError: 400 for a duplicate header.
    """
    fields: dict[str, Any] = {
        "url": form.get("url", ""),
        "schedule": form.get("schedule", "none"),
        **{name: [line.text.strip() for line in lines_of(form.get(name, ""))] for name in _GLOBS},
        "selectors": read_selectors(form),
        **{name: _number(form.get(name, "")) for name in _NUMBERS},
    }
    if "render" in form:
        fields["render"] = form["render"]
    headers = read_headers(form)
    if headers or form.get("forget_headers") == "true":
        fields["headers"] = headers
    return fields


def read_selectors(form: Form) -> dict[str, str]:
    """Return the CSS selectors in the form."""
    return {name: text for name in SELECTORS if (text := form.get(f"selector_{name}", "").strip())}


def read_headers(form: Form) -> dict[str, str]:
    """Return the request headers in the form, one per line.

    Raises:
        ApiError: 400 for a duplicate header.
    """
    headers: dict[str, str] = {}
    for line in lines_of(form.get("headers", "")):
        name, _, value = line.text.partition(":")
        if name.strip().lower() in {other.lower() for other in headers}:
            raise field_error("headers", "invalid", f"must not contain {name.strip()[:64]} twice")
        headers[name.strip()] = value.strip()
    return headers


def explain(details: Sequence[Detail], form: Form) -> dict[str, list[str]]:
    """Map each invalid field of the form to sentences about its problems."""
    sentences_by_field: dict[str, dict[str, None]] = {}
    for detail in details:
        name, sentence = _explain(detail, form)
        sentences_by_field.setdefault(name, {})[sentence] = None
    return {name: list(sentences) for name, sentences in sentences_by_field.items()}


def _explain(detail: Detail, form: Form) -> tuple[str, str]:
    name, _, rest = detail.field.partition("[")
    predicate = detail.message.removeprefix(detail.field.rsplit(".", 1)[-1]).strip()
    if name in _GLOBS:
        lines = lines_of(form.get(name, ""))
        if not rest:
            return name, f"There are {counted(len(lines), 'line')}; at most {MAX_GLOBS} are allowed."
        return name, f"Line {lines[int(rest.partition(']')[0])].number} {predicate}."
    if name.startswith("selectors."):
        return f"selector_{name.removeprefix('selectors.')}", f"This selector {predicate}."
    if name == "headers":
        if detail.code == "too_long":
            lines = lines_of(form.get(name, ""))
            return name, f"There are {counted(len(lines), 'header')}; at most {MAX_HEADERS} are allowed."
        return name, f"The headers {predicate}."
    if name.startswith("headers."):
        return "headers", _explain_header(name.removeprefix("headers."), predicate, form)
    if name in _NUMBERS:
        return name, "This must be a whole number, or empty for no limit."
    if name == "url":
        return name, f"The URL {predicate}."
    return name, f"{detail.message}."


def _explain_header(header: str, predicate: str, form: Form) -> str:
    for line in lines_of(form.get("headers", "")):
        name, colon, value = line.text.partition(":")
        if name.strip()[:80] == header:
            if not colon:
                return f"Line {line.number} has no colon between name and value, as in “Cookie: staging=yes”."
            if not value.strip():
                return f"Line {line.number} has no value after the colon."
            return f"Line {line.number}: the header {header} {predicate}."
    return f"The header {header} {predicate}."


def _number(text: str) -> int | str | None:
    text = text.strip()
    if not text:
        return None
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else text


RULE_SOURCES = {
    "selector": "CSS selector",
    "meta": "Meta element",
    "json_ld": "JSON-LD",
    "path": "URL pattern",
}
"""Maps each type of rule, by the source of its values, to its label."""

Row = dict[str, Any]


def write_rows(rules: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Convert rules to rows. Each row has the index of its rule, since a rule for URLs can set several fields."""
    rows: list[Row] = []
    for rule, stored in enumerate(rules):
        if "path" in stored:
            common = {"kind": "path", "place": stored["path"], "all": False, "rule": rule}
            rows += [{"name": name, "value": value, **common} for name, value in stored["set"].items()]
            continue
        kind = next((kind for kind in RULE_SOURCES if kind in stored), "selector")
        rows.append(
            {
                "name": stored.get("name", ""),
                "kind": kind,
                "place": stored.get(kind, ""),
                "value": stored.get("attribute", ""),
                "all": stored.get("all", False),
                "rule": rule,
            }
        )
    return rows


def read_rows(form: MultiDict[str, str]) -> list[Row]:
    """Convert a form's rows to rules. Adjacent rows with the same URL pattern become one rule."""
    rules: list[Row] = []
    for row in FormTree.of(form).rows("fields"):
        name, kind, place, value = (row.text(part) for part in ("name", "kind", "place", "value"))
        if not (name or place or value):
            continue
        last = rules[-1] if rules else {}
        if kind != "path":
            rule = {"name": name, kind if kind in RULE_SOURCES else "selector": place}
            more = {"attribute": value} if value and kind == "selector" else {}
            rules.append({**rule, **more, **({"all": True} if row.text("all") == "true" else {})})
        elif last.get("path") == place and name not in last["set"]:
            last["set"][name] = value
        else:
            rules.append({"path": place, "set": {name: value}})
    return rules
