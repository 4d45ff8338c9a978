"""The page that a post of a blog is."""

from __future__ import annotations

from app.crawl.fetch.values import FieldRules, Page
from app.crawl.fetch.wordpress import Post
from app.crawl.read.field_rules import ruled_fields


def page_of_post(post: Post, rules: FieldRules) -> Page:
    """A post as a page; its categories and tags are further fields, and what rules give its address."""
    fields = {"categories": list(post.categories), "tags": list(post.tags)}
    return Page(
        title=post.title,
        content=post.content,
        sections=post.sections,
        excerpt=post.excerpt or None,
        author=post.author,
        date=post.date or post.modified,
        fields=ruled_fields(rules, post.url) | {name: values for name, values in fields.items() if values},
    )
