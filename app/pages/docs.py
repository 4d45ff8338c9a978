"""The documentation: Markdown guides as HTML pages, and the API reference from the OpenAPI document."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from flask import Response, current_app, redirect, request
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape
from werkzeug.wrappers import Response as BaseResponse

from app.apidoc.openapi import document, document_at
from app.apidoc.reference import BASE_URL, Reference, read_reference
from app.apidoc.samples import LANGUAGES, mark_placeholders
from app.documentation import (
    GROUPS,
    MOVED_PAGES,
    MOVED_SECTIONS,
    README,
    REFERENCE,
    anchor_of,
    documentation_files,
    documentation_image,
)
from app.errors import ApiError, ErrorCode
from app.pages.layout import code_spans, render
from app.pages.search_box import allow_engine, box_options
from app.runtime import runtime
from app.services.sites import list_sites
from app.web.admission import find_caller
from app.web.hosts import base_url
from app.web.responses import json_response

COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading in a Markdown file."""

    level: int
    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class MarkdownPage:
    """A rendered Markdown file.

    Attributes:
        lead: Text of the first paragraph.
    """

    html: Markup
    headings: Sequence[Heading]
    lead: str


def render_markdown(text: str) -> MarkdownPage:
    """Render a Markdown file. HTML is shown as text, and comments are removed."""
    parser = MarkdownIt("commonmark", {"html": False, "xhtmlOut": False}).enable(["table", "strikethrough"])
    parser.add_render_rule("table_open", _open_table)
    parser.add_render_rule("table_close", _close_table)
    parser.add_render_rule("heading_close", _close_heading)
    parser.add_render_rule("fence", _code)
    parser.add_render_rule("code_block", _code)
    tokens = parser.parse(COMMENT.sub("", text))
    headings = _name_headings(tokens)
    for token in tokens:
        for child in token.children or ():
            if child.type == "link_open":
                child.attrs["href"] = _link_address(str(child.attrs["href"]))
            elif child.type == "image":
                child.attrs["src"] = f"/docs/images/{PurePosixPath(str(child.attrs['src'])).name}"
    return MarkdownPage(Markup(parser.renderer.render(tokens, parser.options, {})), headings, _lead(tokens))  # noqa: S704


def _lead(tokens: Sequence[Token]) -> str:
    for token, inline in itertools.pairwise(tokens):
        if token.type == "paragraph_open":
            return _text_of(inline)
    return ""


def _text_of(inline: Token) -> str:
    parts = (" " if part.type == "softbreak" else part.content for part in inline.children or ())
    return "".join(parts)


def _name_headings(tokens: Sequence[Token]) -> list[Heading]:
    headings: list[Heading] = []
    anchors: set[str] = set()
    for token, inline in itertools.pairwise(tokens):
        if token.type != "heading_open":
            continue
        text = "".join(child.content for child in inline.children or () if child.type in ("text", "code_inline"))
        anchor = anchor_of(text)
        if anchor and anchor not in anchors:
            anchors.add(anchor)
            token.attrs["id"] = anchor
            headings.append(Heading(int(token.tag[1]), text, anchor))
    return headings


def _link_address(href: str) -> str:
    """``"docs/engines.md#size" -> "/docs/engines#size"``"""
    path, hash_, anchor = href.partition("#")
    if ":" in path or not path.endswith(".md"):
        return href
    name = PurePosixPath(path).stem
    return f"/docs/{README if name == 'README' else name}{hash_}{anchor}"


def _open_table(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return '<div class="scroll" tabindex="0"><table>\n'


def _close_table(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return "</table></div>\n"


def _close_heading(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """End a section's heading with a permalink. The style sheet adds the link's symbol, to keep it out of the text."""
    opening, inline, closing = tokens[index - 2 : index + 1]
    link = ""
    if closing.tag != "h1" and "id" in opening.attrs:
        words = escape(f"Link to {_text_of(inline)}")
        link = f' <a class="anchor" href="#{opening.attrs["id"]}" aria-label="{words}"></a>'
    return f"{link}</{closing.tag}>\n"


def _code(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """Render a code block as on other pages: with a copy button, and scrollable by keyboard."""
    code = mark_placeholders(tokens[index].content.rstrip())
    button = '<button type="button" class="copy" data-copy hidden>Copy</button>'
    return f'<div class="code"><pre tabindex="0"><code>{code}</code></pre>{button}</div>\n'


IMAGE_MAX_AGE_SECONDS = 3600
"""Seconds that browsers cache an image."""

START = "start"
"""Name of the page with commands that use the reader's key."""

SEARCH_BOX = "search-box"
"""Name of the page on which readers try the search box."""

SCHEMAS = "schemas"
"""Name of the API reference's page with all schemas."""

LANGUAGE_COOKIE = "docs_language"
"""Cookie in which the page's script stores the language of samples."""

_USING = next(iter(GROUPS))
_MAX_SITES = 100
_LATER_SENTENCES = re.compile(r"(?<=[.?]) .*")


@dataclass(frozen=True, slots=True)
class Entry:
    """A page in the table of contents.

    Attributes:
        name: Path below ``/docs``.
        lead: One-sentence summary.
    """

    name: str
    title: str
    lead: str


def page_names() -> list[str]:
    """Return the names of all pages below ``/docs`` in reading order."""
    return [entry.name for entry in _in_order(_groups())]


def show_docs() -> Response:
    """Show the overview of all pages."""
    return _page("docs.html", "")


def show_docs_page(name: str) -> BaseResponse:
    """Show a guide, or the overview of the API reference. Redirects pages that have moved.

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
    """Show a page of the API reference: the operations of one tag, or all schemas.

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
        mark_placeholders=mark_placeholders,
        sites=_sites(),
    )


def show_docs_markdown(name: str) -> BaseResponse:
    """Serve a guide as Markdown.

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
    """Serve the table of contents for agents: each page with its URL and a summary."""
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
    """Serve an image of the documentation.

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
    """Render a page with the table of contents and the search box, which may call the engine directly."""
    groups = _groups()
    order = [Entry("", "Documentation", ""), *_in_order(groups)]
    index = next((index for index, entry in enumerate(order) if entry.name == name), 0)
    page = render(
        template,
        name=name,
        groups=groups,
        reference_pages=_reference_entries(),
        moved=json.dumps(MOVED_SECTIONS.get(name, {})),
        before=order[index - 1] if index else None,
        after=order[index + 1] if index + 1 < len(order) else None,
        docs_search_key=runtime().settings.docs_search_key,
        **{"sections": (), **values},
    )
    if name in GROUPS[_USING] or name.startswith(f"{REFERENCE}/"):
        page = page.replace(BASE_URL, str(escape(base_url())))
    return allow_engine(Response(page, content_type="text/html; charset=utf-8"))


def _sites() -> list[dict[str, Any]]:
    """Return the logged-in user's sites."""
    caller = find_caller()
    if caller is None or caller.kind != "session":
        return []
    with runtime().database.read() as session:
        sites, _ = list_sites(session, caller.account.id, limit=_MAX_SITES, offset=0)
        return [{"id": site.id, "name": site.name} for site in sites]


def _language() -> str:
    """Return the sample language that the reader last chose."""
    language = request.cookies.get(LANGUAGE_COOKIE, "")
    return language if language in LANGUAGES else next(iter(LANGUAGES))


def _groups() -> dict[str, list[Entry]]:
    """Map the title of each group to its pages."""
    return {title: [entry for name in names if (entry := _entry(name))] for title, names in GROUPS.items()}


def _entry(name: str) -> Entry | None:
    if name == REFERENCE:
        return Entry(name, "API reference", "Every operation, with samples in four languages and a form to try it.")
    guide = _guide(name)
    return None if guide is None else Entry(name, guide.headings[0].text, _LATER_SENTENCES.sub("", guide.lead))


def _reference_entries() -> list[Entry]:
    groups = _reference().groups.values()
    entries = [Entry(f"{REFERENCE}/{group.name}", group.title, group.description) for group in groups]
    return [*entries, Entry(f"{REFERENCE}/{SCHEMAS}", "Schemas", "The fields of all request and response bodies.")]


def _in_order(groups: dict[str, list[Entry]]) -> Sequence[Entry]:
    order: list[Entry] = []
    for entries in groups.values():
        for entry in entries:
            order += [entry, *_reference_entries()] if entry.name == REFERENCE else [entry]
    return order


def _reference() -> Reference:
    reference: Reference = _cached(REFERENCE, lambda: read_reference(document()))
    return reference


def _guide(name: str) -> MarkdownPage | None:
    file = documentation_files().get(name)
    return None if file is None else _cached(f"page {name}", lambda: render_markdown(file.read_text(encoding="utf-8")))


def _cached(key: str, make: Any) -> Any:
    """Return a rendered page, cached for the life of the process, during which the files don't change."""
    cache: dict[str, Reference | MarkdownPage] = current_app.extensions.setdefault("documentation", {})
    if key not in cache:
        cache[key] = make()
    return cache[key]


def show_document() -> Response:
    """Serve the OpenAPI document."""
    return json_response(document_at(base_url()))
