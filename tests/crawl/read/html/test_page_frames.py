"""Names of classes and ids tell what is around a text, however they are written."""

from __future__ import annotations

import pytest

from app.crawl.read.html.page_frames import Roles, roles_of_names


@pytest.mark.parametrize(
    "names",
    ["navbar", "subNav", "spirit-nav", "cookie_banner", "footer2", "site-header", "inner-footer"],
)
def test_parts_of_the_frame(names: str) -> None:
    assert roles_of_names(f"col-3 {names}").frame


@pytest.mark.parametrize(
    "names", ["site-comments", "Share-Buttons", "related-posts", "wp-block-author-box", "jp-relatedposts"]
)
def test_noise(names: str) -> None:
    roles = roles_of_names(f"col-3 {names}")
    assert (roles.frame, roles.noise) == (False, True)


@pytest.mark.parametrize("names", ["sidebar", "jtpl-sidebar", "sphinxsidebar", "right-bar", "sidebar-1"])
def test_sidebars(names: str) -> None:
    assert roles_of_names(f"col-3 {names}").sidebar


@pytest.mark.parametrize("names", ["toc", "sphinxsidebar", "page-header", "bottomlang", "footer-links", "tags"])
def test_lists_of_links(names: str) -> None:
    assert roles_of_names(names).links


@pytest.mark.parametrize(
    "names",
    [
        *("", "deprecation-comment", "table-contents", "content", "note", "method-summary-table", "shared-memory"),
        *("has-sidebar", "no-footer", "with-navbar", "is-header", "headerless", "cookiecutter", "navy-blue-text"),
    ],
)
def test_names_of_texts(names: str) -> None:
    assert roles_of_names(names) == Roles()


def test_endless_names_are_bounded() -> None:
    assert roles_of_names("nav-" * 100_000 + " " + "x " * 100_000) == Roles()
