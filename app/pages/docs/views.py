"""The documentation: its overview, the pages beside the code, and the API's reference from its OpenAPI document."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flask import Response, current_app, g, redirect, request
from markupsafe import escape
from werkzeug.wrappers import Response as BaseResponse

from app.apidoc.code_blocks import mark_own
from app.apidoc.openapi import document
from app.apidoc.reference import BASE_URL, Reference, read_reference
from app.apidoc.samples import LANGUAGES
from app.documentation import (
    GROUPS,
    MOVED_PAGES,
    MOVED_SECTIONS,
    README,
    REFERENCE,
    documentation_files,
    documentation_image,
)
from app.errors import ApiError, ErrorCode
from app.pages.box import allow_engine, box_options
from app.pages.docs.markdown import COMMENT, MarkdownPage, render_markdown
from app.pages.layout import code_spans, render
from app.runtime import runtime
from app.services.access.callers import Caller
from app.services.sites import list_sites
from app.web.hosts import base_url

IMAGE_MAX_AGE_SECONDS = 3600
"""How long a browser keeps a picture without asking."""

START = "start"
"""The page whose commands take the reader's own key."""

SEARCH_BOX = "search-box"
"""The page on which the search box is tried."""

SCHEMAS = "schemas"
"""The page of the reference that has all schemas."""

LANGUAGE_COOKIE = "docs_language"
"""Cookie in which the page's script keeps the language of samples."""

_USING = next(iter(GROUPS))
_MOST_SITES = 100
_LATER_SENTENCES = re.compile(r"(?<=[.?]) .*")


@dataclass(frozen=True, slots=True)
class Entry:
    """A page in the contents.

    Attributes:
        name: Below ``/docs``.
        lead: What it is about, in a sentence.
    """

    name: str
    title: str
    lead: str


def show_docs() -> Response:
    """The overview of all pages."""
    return _page("docs.html", "")


def show_docs_page(name: str) -> BaseResponse:
    """A page of the guide, or the reference's overview; a redirect for a page that has moved.

    Raises:
        ApiError: 404.
    """
    if name in MOVED_PAGES:
        return redirect(f"/docs/{MOVED_PAGES[name]}", 301)
    if name == REFERENCE:
        return _page("docs_reference_index.html", name, reference=_reference())
    guide = _guide(name)
    if guide is None:
        raise _not_found()
    sections = [(heading.anchor, heading.text) for heading in guide.headings if heading.level == 2]
    values: dict[str, Any] = {"guide": guide, "sections": sections}
    if name == SEARCH_BOX:
        return _page("docs_widget.html", name, base_url=base_url(), sites=_sites(), **values, **box_options())
    if name == START:
        return _page("docs_start.html", name, sites=_sites(), **values)
    return _page("docs_page.html", name, **values)


def show_docs_reference(name: str) -> Response:
    """A page of the reference: the operations about one noun, or all schemas.

    Raises:
        ApiError: 404.
    """
    reference = _reference()
    if name == SCHEMAS:
        return _page("docs_schemas.html", f"{REFERENCE}/{name}", schemas=reference.schemas)
    group = reference.groups.get(name)
    if group is None:
        raise _not_found()
    return _page(
        "docs_reference.html",
        f"{REFERENCE}/{name}",
        group=group,
        sections=[(f"operation-{operation.name}", code_spans(operation.title)) for operation in group.operations],
        languages=LANGUAGES,
        language=_language(),
        mark_own=mark_own,
        sites=_sites(),
    )


def show_docs_markdown(name: str) -> BaseResponse:
    """A page of the guide as its Markdown.

    Raises:
        ApiError: 404.
    """
    if name in MOVED_PAGES:
        return redirect(f"/docs/{MOVED_PAGES[name]}.md", 301)
    file = documentation_files().get(name)
    if file is None:
        raise _not_found()
    text = COMMENT.sub("", file.read_text(encoding="utf-8"))
    if name == README:
        text = text.replace("](docs/", "](")
    return _as_text(text.replace(BASE_URL, base_url()), "text/markdown")


def show_llms_txt() -> Response:
    """The contents of the documentation for agents: each page with its address and a line."""
    lines = ["# Site Search Service\n", f"Every operation, for programs: {base_url()}/openapi.json"]
    for title, entries in _groups().items():
        lines.append(f"\n## {title}\n")
        for entry in entries:
            end = "" if entry.name == REFERENCE else ".md"
            lines.append(f"- [{entry.title}]({base_url()}/docs/{entry.name}{end}): {entry.lead}")
    return _as_text("\n".join(lines) + "\n", "text/plain")


def _as_text(text: str, media_type: str) -> Response:
    response = Response(text, content_type=f"{media_type}; charset=utf-8")
    response.add_etag()
    response.cache_control.no_cache = True
    response.make_conditional(request)
    return response


def show_docs_image(name: str) -> Response:
    """A picture of the documentation.

    Raises:
        ApiError: 404.
    """
    file = documentation_image(name)
    if file is None:
        raise ApiError(ErrorCode.NOT_FOUND, "No such image in the documentation.")
    response = Response(file.read_bytes(), content_type="image/png")
    response.cache_control.max_age = IMAGE_MAX_AGE_SECONDS
    return response


def _not_found() -> ApiError:
    return ApiError(ErrorCode.NOT_FOUND, "No such page in the documentation.")


def _page(template: str, name: str, **values: Any) -> Response:
    """A page with the contents and the search box, which may call the engine if browsers do."""
    settings = runtime().settings
    groups = _groups()
    order = [Entry("", "Documentation", ""), *_in_order(groups)]
    place = next((place for place, entry in enumerate(order) if entry.name == name), 0)
    page = render(
        template,
        name=name,
        groups=groups,
        reference_pages=_reference_entries(),
        moved=json.dumps(MOVED_SECTIONS.get(name, {})),
        before=order[place - 1] if place else None,
        after=order[place + 1] if place + 1 < len(order) else None,
        docs_search_key=settings.docs_search_key,
        **{"sections": (), **values},
    )
    if name in GROUPS[_USING] or name.startswith(f"{REFERENCE}/"):
        page = page.replace(BASE_URL, str(escape(base_url())))
    return allow_engine(Response(page, content_type="text/html; charset=utf-8"))


def _sites() -> list[dict[str, Any]]:
    """Sites of whoever is logged in."""
    caller: Caller | None = g.get("caller")
    if caller is None or caller.kind != "session":
        return []
    with runtime().database.read() as session:
        found, _ = list_sites(session, caller.account.id, limit=_MOST_SITES, offset=0)
        return [{"id": site.id, "name": site.name} for site in found]


def _language() -> str:
    """The language of samples that the reader chose last."""
    chosen = request.cookies.get(LANGUAGE_COOKIE, "")
    return chosen if chosen in LANGUAGES else next(iter(LANGUAGES))


def _groups() -> dict[str, list[Entry]]:
    """Title of a group to its pages."""
    return {title: [entry for name in names if (entry := _entry(name))] for title, names in GROUPS.items()}


def _entry(name: str) -> Entry | None:
    if name == REFERENCE:
        return Entry(name, "API reference", "Every operation, with samples in four languages and a form to try it.")
    guide = _guide(name)
    return None if guide is None else Entry(name, guide.headings[0].text, _LATER_SENTENCES.sub("", guide.lead))


def _reference_entries() -> list[Entry]:
    """Pages of the reference."""
    groups = _reference().groups.values()
    entries = [Entry(f"{REFERENCE}/{group.name}", group.title, group.description) for group in groups]
    return [*entries, Entry(f"{REFERENCE}/{SCHEMAS}", "Schemas", "Fields of all bodies.")]


def _in_order(groups: dict[str, list[Entry]]) -> Sequence[Entry]:
    """All pages, in the order of reading."""
    order: list[Entry] = []
    for entries in groups.values():
        for entry in entries:
            order += [entry, *_reference_entries()] if entry.name == REFERENCE else [entry]
    return order


def _reference() -> Reference:
    reference: Reference = _kept(REFERENCE, lambda: read_reference(document()))
    return reference


def _guide(name: str) -> MarkdownPage | None:
    file = documentation_files().get(name)
    return None if file is None else _kept(f"page {name}", lambda: render_markdown(file.read_text(encoding="utf-8")))


def _kept(key: str, make: Any) -> Any:
    """Answers that this process made before; the files they are made from do not change while it runs."""
    kept: dict[str, Reference | MarkdownPage] = current_app.extensions.setdefault("documentation", {})
    if key not in kept:
        kept[key] = make()
    return kept[key]
