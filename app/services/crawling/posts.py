"""The page that a post of a blog is."""

from __future__ import annotations

from app.crawler.values import Page
from app.crawler.wordpress import Post
from app.text_formats import html_to_text


def page_of_post(post: Post) -> Page:
    """A post as a page; its categories and tags are further fields."""
    fields = {"categories": list(post.categories), "tags": list(post.tags)}
    return Page(
        title=html_to_text(post.title),
        content=html_to_text(post.content),
        excerpt=html_to_text(post.excerpt) or None,
        author=post.author,
        date=post.date or post.modified,
        fields={name: values for name, values in fields.items() if values},
    )
