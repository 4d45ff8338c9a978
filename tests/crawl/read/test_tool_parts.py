"""Consent tools, documentation generators, and permalinks add texts to pages that are not main text."""

from __future__ import annotations

import pytest
from turbohtml import parse

from app.crawl.read.main_text import main_text
from app.texts.sections import take_sections

TEXT = "Boats leave the harbor at ten."
PROSE = f"{TEXT} They are back in the evening, if the weather allows it. " * 8


def text_of(html: str) -> str:
    """Return the main text of a page as stored."""
    return take_sections(main_text(parse(html)))[0]


@pytest.mark.parametrize(
    "banner",
    [
        '<div id="cookie-law-info-bar"><span>Chrome</span></div>',
        '<div class="cmplz-cookiebanner"><div class="cmplz-message">Chrome</div></div>',
        '<div id="onetrust-consent-sdk"><div id="onetrust-banner-sdk">Chrome</div></div>',
        '<div id="tarteaucitronRoot">Chrome</div>',
        '<aside id="moove_gdpr_cookie_info_bar">Chrome</aside>',
        '<div class="qc-cmp2-container">Chrome</div>',
        '<div id="usercentrics-cmp-ui">Chrome</div>',
        '<div id="cmpbox">Chrome</div>',
        '<div id="termly-code-snippet-support">Chrome</div>',
        '<div data-hook="ccsu-banner-wrapper">Chrome</div>',
        '<div id="CybotCookiebotDialog">Chrome</div>',
        '<div class="cky-consent-container">Chrome</div>',
        '<div class="osano-cm-window">Chrome</div>',
        '<div id="didomi-host">Chrome</div>',
        '<div id="iubenda-cs-banner">Chrome</div>',
        '<div id="sp_message_container_1234">Chrome</div>',
        '<div class="klaro">Chrome</div>',
        '<div id="shopify-pc__banner">Chrome</div>',
    ],
)
def test_banner_of_a_consent_tool_is_not_text_even_on_a_short_page(banner: str) -> None:
    assert text_of(f"<body><h1>Harbor</h1><p>{TEXT}</p>{banner}") == f"Harbor\n\n{TEXT}"


def test_privacy_notice_is_not_text_except_on_its_own_page() -> None:
    notice = '<div class="privacy-notice">We use cookies.</div>'

    assert text_of(f"<body><p>{PROSE}</p>{notice}") == PROSE.strip()
    assert text_of(f"<body>{notice}") == "We use cookies."


def test_state_of_a_consent_tool_on_the_body_does_not_remove_the_page() -> None:
    assert text_of(f"<body class='klaro cmplz-cookiebanner'><p>{TEXT}</p>") == TEXT


@pytest.mark.parametrize(
    "part",
    [
        '<div class="theme-doc-version-banner alert"><div>Chrome, no longer actively maintained</div></div>',
        '<span class="theme-doc-version-badge badge">Chrome: 1.0</span>',
        '<div class="tocCollapsible_ETCw theme-doc-toc-mobile"><button>Chrome</button></div>',
        '<div class="VPLocalNavOutlineDropdown"><button>Chrome</button></div>',
        '<div class="VPDocAsideOutline"><div class="outline-title">Chrome</div></div>',
        '<form class="md-feedback"><fieldset><legend>Chrome</legend></fieldset></form>',
        '<div class="md-source-file"><small>Chrome</small></div>',
        '<div data-md-component="outdated"><p>Chrome</p></div>',
        '<div class="content-icon-container"><a class="muted-link" href="x">Chrome</a></div>',
        '<a class="back-to-top" href="#"><span>Chrome</span></a>',
        '<div class="rst-versions"><span>Chrome</span></div>',
        '<div class="td-page-meta"><a href="x">Chrome</a></div>',
        '<div class="nextra-toc"><p>Chrome</p></div>',
    ],
)
def test_frame_of_a_documentation_generator_is_not_text(part: str) -> None:
    page = f"<body><main><article>{part}<h1>Harbor</h1><p>{TEXT}</p>{part}</article></main>"

    assert text_of(page) == f"Harbor\n\n{TEXT}"


@pytest.mark.parametrize(
    "part",
    [
        '<div class="page-feedback">Chrome</div>',
        '<div class="page-last-modified">Chrome</div>',
        '<div id="version-warning-banner" class="admonition">Chrome</div>',
        '<div class="edit-this-page">Chrome</div>',
    ],
)
def test_frame_with_a_common_name_is_not_text_beside_enough_text(part: str) -> None:
    assert text_of(f"<body><main><p>{PROSE}</p>{part}</main>") == PROSE.strip()


@pytest.mark.parametrize(
    "code",
    [
        '<div class="theme-code-block"><div><pre>npm run</pre><div><button aria-label="Kopieren">Chrome</button>',
        '<div class="language-sh"><button class=copy>Chrome</button><span class=lang>Chrome</span><pre>npm run</pre>',
        '<div class="highlight"><pre>npm run</pre><button data-clipboard-target="#c">Chrome</button>',
        "<div><pre>npm run</pre><div><clipboard-copy>Chrome</clipboard-copy></div>",
        "<div><pre>npm run<button>Chrome</button></pre>",
        '<div class="code-example"><div class="example-header"><span>Chrome</span></div><pre>npm run</pre>',
    ],
)
def test_buttons_and_languages_of_code_blocks_are_not_text(code: str) -> None:
    assert text_of(f"<body><main><p>{TEXT}</p>{code}</main>") == f"{TEXT}\n\nnpm run"


@pytest.mark.parametrize(
    "heading",
    [
        '<h2 id="c">Configure it</h2><a class="sl-anchor-link" href="#c"><span class="sr-only">Section</span></a>',
        '<h2 id="c">Configure it <a href="#c"><span class="visually-hidden">Permalink</span>#</a></h2>',
        '<h2 id="c">Configure it<a href="#c"><span class="screen-reader-text">Link to this section</span></a></h2>',
        '<h2 id="c"><a href="#c"><span class="govuk-visually-hidden">Link to </span>Configure it</a></h2>',
        '<h2 id="c">Configure it<a href="#c"><span class="VisuallyHidden_abc12">Link</span></a></h2>',
        '<h2 id="c">Configure it<a href="#c"><span class="show-for-sr">Link</span></a></h2>',
        '<h2 id="c">Configure it<a class="headerlink" href="#c">Link to this heading</a></h2>',
        '<h2 id="c">Configure it</h2><a class="header-anchor" href="#c">Permalink</a>',
        '<h2 id="c"><a class="header-anchor" href="#c"><span>Configure it</span></a></h2>',
    ],
)
def test_texts_for_screen_readers_in_anchor_links_are_not_text(heading: str) -> None:
    text, sections = take_sections(main_text(parse(f"<body><main>{heading}<p>{TEXT}</p></main>")))

    assert text == f"Configure it\n\n{TEXT}"
    assert [section.title for section in sections] == ["Configure it"]


@pytest.mark.parametrize(
    "part",
    [
        "<h3><button class=accordion-button>Kept</button></h3>",
        "<div class=copy><p>Kept</p></div>",
        "<span class=badge>Kept</span>",
        "<a href=/x class=not-sr-only>Kept</a>",
        "<p class=sr-only>Kept</p>",
        "<p><a class=anchor-link href=#c>Kept</a></p>",
        "<div class=privacy-policy>Kept</div>",
    ],
)
def test_parts_with_similar_names_stay(part: str) -> None:
    assert "Kept" in text_of(f"<body><main><p>{TEXT}</p>{part}</main>")


@pytest.mark.parametrize("words", ["¶", "Link to this heading"])
def test_section_that_is_named_like_a_part_of_the_frame_stays(words: str) -> None:
    link = f'<a class="headerlink" href="#copyright">{words}</a>'
    section = f'<section id="copyright"><h2>Copyright{link}</h2><p>1999-2021, the authors.</p></section>'

    assert "1999-2021" in text_of(f"<body><main><p>{PROSE}</p>{section}</main>")
