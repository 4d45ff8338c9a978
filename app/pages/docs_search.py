"""Built-in search of the documentation, for installations without a site that contains it.

Each process indexes the pages in memory at the first search. The search box finds the routes that it needs below
``/docs``.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import orjson
from flask import Response, current_app, request

from app.documentation import RANKS, SYNONYMS
from app.pages import docs
from app.runtime import Runtime, runtime
from app.services.access.credentials import SiteRecord
from app.services.engines import Engines
from app.services.search.encoding import encode_effects, encode_hit
from app.services.search.search import Searcher
from app.services.search.site_queries import for_site
from app.services.search.suggestions import Suggester, encode_suggestions
from app.texts.formats import node_to_text, parse_html
from app.texts.sections import mark_headings, take_sections
from app.web.hosts import base_url
from app.web.parsing import load_values, read_json
from app.web.responses import json_response
from backends.base import Document
from backends.query import MATCH_ALL, Boost, Highlight, SearchQuery, SearchSettings
from backends.registry import create_backend
from schemas.gateway import EngineSearchSchema
from schemas.suggestions import SuggestQuerySchema

REPEATED = ".samples, .your-key, .errors, .copy, .turn, .try"
"""CSS selector of elements that repeat on many pages, or that belong to a user."""

_INDEX = "documentation"
_building = threading.Lock()


@dataclass(frozen=True, slots=True)
class _Documentation:
    """The documentation with its index, as a site without an owner."""

    site: SiteRecord
    searcher: Searcher
    suggester: Suggester


def show_docs_client_info() -> Response:
    """Tell the search box where to search the documentation."""
    host = f"{base_url()}/docs/engine"
    return json_response({"engine_host": host, "engine_key": "", "active": True, "index": _INDEX})


def search_docs() -> Response:
    """Search the documentation, with the gateway's parameters. Filters, facets, and sorting have no effect.

    Raises:
        ApiError: 400.
    """
    parameters = load_values(EngineSearchSchema(), read_json(request))
    documentation = _documentation()
    retrieved = parameters["attributesToRetrieve"]
    fields = None if "*" in retrieved else frozenset({"id", *retrieved})
    query = SearchQuery(
        text=parameters["q"].strip() or MATCH_ALL,
        limit=parameters["limit"],
        offset=parameters["offset"],
        highlight=Highlight(
            pre_tag=parameters["highlightPreTag"],
            post_tag=parameters["highlightPostTag"],
            escape=False,
            crop_fields={"content": parameters["cropLength"]},
            only_fields=None if fields is None else fields | {"title", "content"},
        ),
        sections=parameters["sections"],
        answers=True,
        returned_fields=fields,
    )
    query = for_site(query, documentation.site)
    timed = documentation.searcher.run(documentation.site, query)
    return json_response(
        {
            "hits": [orjson.Fragment(encode_hit(hit)) for hit in timed.result.hits],
            "estimatedTotalHits": timed.result.total,
            "metadata": {"matched": timed.result.matched.value, "corrected_query": timed.result.corrected_query},
            **encode_effects(query, timed, ()),
            **_suggestions(parameters["q"], parameters["suggestions"]),
        }
    )


def suggest_docs() -> Response:
    """Complete a prefix with titles of the documentation.

    Raises:
        ApiError: 400.
    """
    parameters = load_values(SuggestQuerySchema(), request.args)
    return json_response(_suggestions(parameters["q"], parameters["limit"]))


def _suggestions(typed: str, limit: int) -> dict[str, Any]:
    """Return up to ``limit`` suggestions for the response; nothing for a limit of 0."""
    if not limit:
        return {}
    documentation = _documentation()
    return encode_suggestions(documentation.suggester.suggest(documentation.site, typed, limit))


def _documentation() -> _Documentation:
    """Return the documentation, which is indexed at the first call."""
    with _building:
        indexed: _Documentation | None = current_app.extensions.get("documentation_search")
        if indexed is None:
            indexed = current_app.extensions["documentation_search"] = _index(runtime())
    return indexed


def _index(current_runtime: Runtime) -> _Documentation:
    engine = create_backend("memory://")
    engine.create_index(_INDEX)
    engine.upsert(_INDEX, [_read(name) for name in docs.page_names()], {})
    site = SiteRecord(
        id=0, account_id=0, name="Documentation", description="", url="", domain="", index=_INDEX,
        engine=engine.identity, engine_index=_INDEX, active=True, deleted=False, agents=False, public_epoch=0,
        kinds={}, settings=SearchSettings(
            language="en", synonyms=SYNONYMS, boosts=tuple(Boost(rank, path=path) for path, rank in RANKS.items())
        ),
    )  # fmt: skip
    max_bytes = current_runtime.settings.max_answer_bytes
    searcher = Searcher(Engines(engine), current_runtime.indexer, current_runtime.events, max_bytes)
    return _Documentation(site, searcher, Suggester(current_runtime.database, searcher))


def _read(name: str) -> Document:
    """Read a page as a visitor who is not logged in sees it."""
    url = f"/docs/{name}"
    with current_app.test_request_context(url):
        group, _, tag = name.rpartition("/")
        response = docs.show_docs_reference(tag) if group else docs.show_docs_page(name)
    page = parse_html(response.get_data(as_text=True))
    page.remove(REPEATED)
    (article,) = page.select("article")
    title = article.select("h1")[0].text
    mark_headings(article)
    content, sections = take_sections(node_to_text(article))
    return Document(url, {"id": url, "title": title, "content": content, "url": url}, 0, sections)
