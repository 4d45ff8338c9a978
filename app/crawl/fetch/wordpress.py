"""Posts and pages of a WordPress blog from its REST API."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from app.crawl.fetch.addresses import MAX_URL_CHARACTERS, normalize_url, parse_url
from app.crawl.fetch.characters import read_json
from app.crawl.fetch.values import Fetch, Fetched, NotIndexed, ReadListing, Reason, TryLater
from app.texts.formats import html_to_marked_text, html_to_text
from app.texts.sections import take_sections
from backends.sections import Section

TYPES = ("posts", "pages")
PER_PAGE = 25
"""Number of posts in one response: few enough that even posts of 400 KiB fit into the size limit of a response."""
MAX_PAGES = 10_000
"""Maximum number of responses read for one type."""

_FIELDS = "id,type,status,link,date_gmt,modified_gmt,title,content,excerpt,_links,_embedded"
_API_LINK = re.compile(r"<(?P<url>[^<>]{1,2000})>\s*;\s*rel=\"?https://api\.w\.org/\"?")
_PLAIN_PERMALINKS = "rest_route"


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Post:
    """A published post or page.

    Attributes:
        url: Absolute and normalized.
        title, content, excerpt: Plain text.
        date, modified: ISO 8601, UTC; ``None`` if missing.
        author: The author's name, if the API returns it.
        categories, tags: Names.
        sections: Headings of the content that have a URL of their own.
    """

    url: str
    title: str
    content: str
    excerpt: str
    date: str | None
    modified: str | None
    author: str | None
    categories: tuple[str, ...]
    tags: tuple[str, ...]
    sections: tuple[Section, ...] = ()


@dataclass(frozen=True, slots=True)
class UnreadablePost:
    """A post that could not be read because of a bug; the log has the traceback."""

    url: str


def walk_posts(
    fetch: Fetch, url: str, read: ReadListing[tuple[Post | UnreadablePost, ...]]
) -> Iterator[Post | UnreadablePost]:
    """Iterate over a blog's published posts and pages, except password-protected ones, oldest first.

    One response is in memory at a time.

    Args:
        fetch: Fetches a response of the API, and waits if the host asks it to.
        url: The blog's URL.
        read: Reads a response, as :func:`read_posts` does.

    Raises:
        NotIndexed: The API cannot be fetched (any reason), or its response is not valid (``bad_source``).
    """
    root, first, posts = _find_api(fetch, url, read)
    for type_ in TYPES:
        if type_ == TYPES[0]:
            response = first
        else:
            response = fetch(_api_url(root, type_, 1), any_type=True)
            posts = read(response)
        yield from posts
        for number in range(2, min(_total_pages(response), MAX_PAGES) + 1):
            yield from read(fetch(_api_url(root, type_, number), any_type=True))


def read_posts(fetched: Fetched) -> tuple[Post | UnreadablePost, ...]:
    """Read the posts in a fetched response, skipping posts that are not public or have no URL.

    Raises:
        NotIndexed: The response is not a list of posts (``bad_source``).
    """
    posts = (_post_or_failure(item, fetched.url) for item in _items(fetched))
    return tuple(post for post in posts if post is not None)


def _post_or_failure(item: dict[str, Any], base: str) -> Post | UnreadablePost | None:
    try:
        return _post(item, base)
    except Exception:
        log.exception("the post %s cannot be read", item.get("link"))
        return UnreadablePost(normalize_url(str(item.get("link")), base)[:MAX_URL_CHARACTERS])


def _find_api(
    fetch: Fetch, url: str, read: ReadListing[tuple[Post | UnreadablePost, ...]]
) -> tuple[str, Fetched, tuple[Post | UnreadablePost, ...]]:
    """Return the root of a blog's API, the first response with its posts, and these posts.

    WordPress sends the API's URL in a header of each page. A cache may drop it, so the usual URLs are tried, too.
    """
    blog = normalize_url(url)
    start = fetch(blog, any_type=True)
    folder = parse_url(start.url)
    folder.search = ""
    above, _, last = folder.pathname.rpartition("/")
    # A last segment with a dot is a file, such as index.php.
    folder.pathname = f"{above}/" if not last or "." in last else f"{above}/{last}/"
    usual = [normalize_url("wp-json/", folder.href), normalize_url(f"?{_PLAIN_PERMALINKS}=/", folder.href)]
    link = _API_LINK.search(start.headers.get("link", ""))
    roots = [normalize_url(link["url"], start.url), *usual] if link else usual
    for root in dict.fromkeys(roots):
        try:
            response = fetch(_api_url(root, TYPES[0], 1), any_type=True)
            posts = read(response)
        except NotIndexed as error:
            # Other failures do not tell whether the API is at this URL, so the search must not go on.
            missing = error.reason == Reason.BAD_SOURCE or error.reason.startswith("http_4")
            if isinstance(error, TryLater) or not missing:
                raise
            continue
        return root, response, posts
    raise NotIndexed(Reason.BAD_SOURCE, "The URL does not belong to a WordPress blog with a readable REST API.")


def _api_url(root: str, type_: str, page: int) -> str:
    query = {
        "page": page,
        "per_page": PER_PAGE,
        # Posts that are published meanwhile get the highest IDs, so the pages of the list do not shift.
        "orderby": "id",
        "order": "asc",
        "_embed": "author,wp:term",
        "_fields": _FIELDS,
    }
    address = parse_url(root)
    if f"{_PLAIN_PERMALINKS}=" in address.search:
        address.search = urlencode({_PLAIN_PERMALINKS: f"/wp/v2/{type_}", **query})
    else:
        address.pathname = f"{address.pathname.rstrip('/')}/wp/v2/{type_}"
        address.search = urlencode(query)
    return address.href


def _total_pages(response: Fetched) -> int:
    total = response.headers.get("x-wp-totalpages", "")
    return int(total) if re.fullmatch(r"[0-9]{1,9}", total) else 1


def _items(response: Fetched) -> list[dict[str, Any]]:
    try:
        items = read_json(response.body)
    except ValueError as error:
        raise NotIndexed(Reason.BAD_SOURCE, "The REST API of the blog does not return JSON.") from error
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise NotIndexed(Reason.BAD_SOURCE, "The REST API of the blog does not return a list of posts.")
    return items


def _post(item: dict[str, Any], base: str) -> Post | None:
    """Convert a post from the API; ``None`` if it is not public or has no URL."""
    content = item.get("content")
    if item.get("status") != "publish" or not isinstance(content, dict) or content.get("protected"):
        return None
    link = _string(item.get("link"))
    try:
        url = normalize_url(link, base) if link else None
    except ValueError:
        url = None
    if url is None or len(url) > MAX_URL_CHARACTERS:
        return None
    embedded = item.get("_embedded")
    embedded = embedded if isinstance(embedded, dict) else {}
    terms = [term for group in _list(embedded.get("wp:term")) for term in _list(group) if isinstance(term, dict)]
    text, sections = take_sections(html_to_marked_text(_member(content, "rendered") or ""))
    authors = [name for author in _list(embedded.get("author")) if (name := _member(author, "name"))]
    return Post(
        url=url,
        title=html_to_text(_member(item.get("title"), "rendered") or ""),
        content=text,
        sections=sections,
        excerpt=html_to_text(_member(item.get("excerpt"), "rendered") or ""),
        date=_moment(item.get("date_gmt")),
        modified=_moment(item.get("modified_gmt")),
        author=authors[0] if authors else None,
        categories=_names(terms, "category"),
        tags=_names(terms, "post_tag"),
    )


def _names(terms: list[dict[str, Any]], taxonomy: str) -> tuple[str, ...]:
    names = (_member(term, "name") for term in terms if term.get("taxonomy") == taxonomy)
    return tuple(dict.fromkeys(name for name in names if name))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _member(value: Any, name: str) -> str | None:
    return _string(value.get(name)) if isinstance(value, dict) else None


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _moment(value: Any) -> str | None:
    """``"2024-05-01T09:30:00" -> "2024-05-01T09:30:00Z"``: times of the API are in UTC, but do not say so."""
    text = _string(value)
    return f"{text}Z" if text and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}", text) else None
