"""The WordPress REST API lists a blog's posts and pages."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import orjson
import pytest

from app.crawl.fetch.values import Fetched, NotIndexed, Reason, TryLater
from app.crawl.fetch.wordpress import PER_PAGE, Post, read_posts, walk_posts

BLOG = "https://www.example.com/blog/"


def item(number: int, **changes: Any) -> dict[str, Any]:
    """Build a post as the API returns it."""
    return {
        "id": number,
        "type": "post",
        "status": "publish",
        "link": f"{BLOG}post-{number}/",
        "date_gmt": "2026-02-03T04:05:06",
        "modified_gmt": "2026-03-03T04:05:06",
        "title": {"rendered": f"Post &#8211; {number}"},
        "content": {"rendered": "<p>Words</p>", "protected": False},
        "excerpt": {"rendered": "<p>Short</p>", "protected": False},
        "_embedded": {
            "author": [{"id": 1, "name": "Ann"}],
            "wp:term": [
                [{"taxonomy": "category", "name": "News"}, {"taxonomy": "category", "name": "Art"}],
                [{"taxonomy": "post_tag", "name": "blue"}],
            ],
        },
        **changes,
    }


class Blog:
    """A fake fetch that serves a blog's API, with plain or pretty permalinks."""

    def __init__(self, *, posts: list[Any], pages: list[Any], root: str = f"{BLOG}wp-json/", link: str = "") -> None:
        self.items = {"posts": posts, "pages": pages}
        self.root = root
        self.link = link
        self.refused: NotIndexed = NotIndexed("http_404", "No.")
        self.asked: list[dict[str, str]] = []

    def __call__(self, url: str, *, any_type: bool = False, max_bytes: int = 0, truncate: bool = False) -> Fetched:
        assert any_type
        if url == BLOG.removesuffix("/") or url == BLOG:
            return Fetched(BLOG, 200, {"link": self.link} if self.link else {}, b"<p>Blog")
        address = urlsplit(url)
        query = dict(parse_qsl(address.query))
        route = query.pop("rest_route", None)
        if route is not None and "rest_route" in self.root and url.startswith(self.root.partition("?")[0]):
            kind = route.removeprefix("/wp/v2/")
        elif route is None and url.startswith(f"{self.root}wp/v2/"):
            kind = address.path.rpartition("/")[2]
        else:
            raise self.refused
        self.asked.append({**query, "kind": kind})
        size, page = int(query["per_page"]), int(query["page"])
        found = self.items[kind]
        headers = {"x-wp-totalpages": str(-(-len(found) // size))}
        return Fetched(url, 200, headers, orjson.dumps(found[size * (page - 1) : size * page]))


def test_post_has_the_rendered_title_content_and_terms() -> None:
    blog = Blog(posts=[item(1)], pages=[])

    assert list(walk_posts(blog, BLOG, read_posts)) == [
        Post(
            url=f"{BLOG}post-1/",
            title="Post – 1",
            content="Words",
            excerpt="Short",
            date="2026-02-03T04:05:06Z",
            modified="2026-03-03T04:05:06Z",
            author="Ann",
            categories=("News", "Art"),
            tags=("blue",),
        )
    ]


def test_all_posts_and_pages_are_read_across_result_pages() -> None:
    posts = [item(number) for number in range(PER_PAGE * 2 + 1)]
    blog = Blog(posts=posts, pages=[item(900, type="page", _embedded={})])

    found = [post.url for post in walk_posts(blog, BLOG, read_posts)]

    assert found == [each["link"] for each in [*posts, item(900)]]
    assert [(asked["kind"], asked["page"]) for asked in blog.asked] == [
        *(("posts", page) for page in "123"),
        ("pages", "1"),
    ]
    assert {asked["orderby"] for asked in blog.asked} == {"id"}


@pytest.mark.parametrize(
    "hidden",
    [
        {"status": "draft"},
        {"status": "private"},
        {"content": {"rendered": "", "protected": True}},
        {"link": "javascript:alert(1)"},
        {"link": None},
        {"content": None},
    ],
)
def test_drafts_private_protected_and_malformed_posts_are_skipped(hidden: dict[str, Any]) -> None:
    blog = Blog(posts=[item(1, **hidden), item(2)], pages=[])

    assert [post.url for post in walk_posts(blog, BLOG, read_posts)] == [f"{BLOG}post-2/"]


@pytest.mark.parametrize(
    ("root", "link"),
    [
        (f"{BLOG}wp-json/", ""),
        (f"{BLOG}?rest_route=/", ""),
        (f"{BLOG}index.php?rest_route=/", f'<{BLOG}index.php?rest_route=/>; rel="https://api.w.org/"'),
        (f"{BLOG}api/", f'<{BLOG}feed/>; rel="alternate", <{BLOG}api/>; rel="https://api.w.org/"'),
    ],
)
@pytest.mark.parametrize("url", [BLOG, BLOG.removesuffix("/")])
def test_api_root_is_discovered_for_all_permalink_styles(root: str, link: str, url: str) -> None:
    blog = Blog(posts=[item(1)], pages=[], root=root, link=link)

    assert len(list(walk_posts(blog, url, read_posts))) == 1


def test_site_without_the_wordpress_api_is_a_bad_source() -> None:
    with pytest.raises(NotIndexed) as caught:
        list(walk_posts(Blog(posts=[], pages=[], root="https://elsewhere.example/"), BLOG, read_posts))

    assert caught.value.reason == Reason.BAD_SOURCE


@pytest.mark.parametrize("error", [NotIndexed("timeout", "No."), TryLater("http_429", "Later.", 5)])
def test_temporarily_unavailable_api_raises_the_original_error(error: NotIndexed) -> None:
    blog = Blog(posts=[], pages=[], root="https://elsewhere.example/")
    blog.refused = error

    with pytest.raises(NotIndexed) as caught:
        list(walk_posts(blog, BLOG, read_posts))

    assert caught.value is error


@pytest.mark.parametrize("strange", [[1], ["x"], [None]])
def test_response_that_is_not_a_list_of_posts_is_a_bad_source(strange: list[Any]) -> None:
    with pytest.raises(NotIndexed) as caught:
        list(walk_posts(Blog(posts=strange, pages=[]), BLOG, read_posts))

    assert caught.value.reason == Reason.BAD_SOURCE


def test_malformed_post_fields_are_ignored() -> None:
    strange = item(
        1, title="x", excerpt=None, date_gmt="soon", modified_gmt=5, _embedded={"author": "x", "wp:term": [1, [2], {}]}
    )

    (post,) = walk_posts(Blog(posts=[strange], pages=[]), BLOG, read_posts)

    assert (post.title, post.excerpt, post.date, post.modified, post.author) == ("", "", None, None, None)
    assert (post.categories, post.tags) == ((), ())
