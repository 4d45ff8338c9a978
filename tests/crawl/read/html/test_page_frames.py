"""Class and id names reveal the parts of a page's frame, in any spelling."""

from __future__ import annotations

import pytest

from app.crawl.read.html.page_frames import Roles, roles_of_names


@pytest.mark.parametrize(
    "names",
    ["navbar", "subNav", "spirit-nav", "cookie_banner", "footer2", "site-header", "inner-footer"],
)
def test_names_of_bars_headers_and_footers_are_frame(names: str) -> None:
    assert roles_of_names(f"col-3 {names}").frame


@pytest.mark.parametrize(
    "names", ["site-comments", "Share-Buttons", "related-posts", "wp-block-author-box", "jp-relatedposts"]
)
def test_names_of_comments_share_buttons_and_related_posts_are_noise(names: str) -> None:
    roles = roles_of_names(f"col-3 {names}")
    assert (roles.frame, roles.noise) == (False, True)


@pytest.mark.parametrize("names", ["sidebar", "jtpl-sidebar", "sphinxsidebar", "right-bar", "sidebar-1"])
def test_names_of_sidebars_are_sidebars(names: str) -> None:
    assert roles_of_names(f"col-3 {names}").sidebar


@pytest.mark.parametrize("names", ["toc", "sphinxsidebar", "page-header", "bottomlang", "footer-links", "tags"])
def test_names_of_link_lists_are_links(names: str) -> None:
    assert roles_of_names(names).links


@pytest.mark.parametrize(
    "names",
    [
        *("", "deprecation-comment", "table-contents", "content", "note", "method-summary-table", "shared-memory"),
        *("has-sidebar", "no-footer", "with-navbar", "is-header", "headerless", "cookiecutter", "navy-blue-text"),
    ],
)
def test_ordinary_class_names_have_no_role(names: str) -> None:
    assert roles_of_names(names) == Roles()


def test_extremely_long_class_names_have_no_role() -> None:
    assert roles_of_names("nav-" * 100_000 + " " + "x " * 100_000) == Roles()
