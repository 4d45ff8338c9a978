"""Removal of parts that tools add to pages, such as consent banners, by the names that the tools give them.

They are never main text, however little else the page contains.
"""

from __future__ import annotations

from turbohtml import Document, Element

_CONSENT_NAMES = """
    axeptio_overlay BorlabsCookieBox BorlabsDialog cassie-widget cc-main cc-window ccc-module ccc-notify
    ccfw-page-banner ccm-modal ccm-root ccm-widget cky-consent-container cky-modal cli-modal cliSettingsPopup
    cmpbox cmpbox2 cmplz-cookiebanner cmplz-cookiebanner-container cmplz-manage-consent cmpwrapper
    consent-banner-root-container consent_blackbar cookie-law-info-again cookie-law-info-bar CookiebotWidget
    cookiefirst-root cookiescript_injected cookiescript_injected_wrapper CybotCookiebotDialog didomi-host
    didomi-popup-container eu-cookie-compliance-banner fc-consent-root gdpr-cookie-notice govuk-cookie-banner
    hs-eu-cookie-confirmation isense-cc-window iubenda-cs-banner klaro moove_gdpr_cookie_info_bar
    moove_gdpr_cookie_modal nhsuk-cookie-banner onetrust-banner-sdk onetrust-consent-sdk onetrust-pc-sdk
    orejime-Modal orejime-Notice orejime-NoticeWrapper osano-cm-dialog osano-cm-window ppms_cm_popup_overlay
    qc-cmp-ui-container qc-cmp2-container qc-cmp2-ui rcb-banner shopify-pc__banner silktide-banner
    silktide-wrapper sliding-popup tarteaucitronRoot tc-privacy-wrapper termly-code-snippet-support
    termsfeed-com---nb trustarc-banner-overlay truste-consent-track usercentrics-cmp-ui usercentrics-root
"""
"""IDs and classes of the outermost elements of consent tools."""
_CONSENT_TOOLS = frozenset(_CONSENT_NAMES.split())
_OUTER_ELEMENTS = "body > *, body > * > *, body > * > * > *"
"""Selects the three outermost levels of a page, where consent tools add their elements. Selectors for all of these
elements took a millisecond per page.
"""
_DOCUMENTATION = (
    # Docusaurus.
    ".theme-announcement-bar, .theme-doc-version-banner, .theme-doc-version-badge, .theme-doc-toc-mobile, "
    ".theme-doc-toc-desktop, .theme-doc-footer, .theme-last-updated, "
    # VitePress.
    ".VPLocalNav, .VPLocalNavOutlineDropdown, .VPDocAsideOutline, .VPDocFooter, [class*=language-] > span.lang, "
    # MkDocs.
    ".md-source-file, .md-feedback, .md-content__button, [data-md-component=outdated], [data-md-component=announce], "
    # Sphinx.
    ".content-icon-container, .back-to-top, .edit-this-page, .view-this-page, .rst-versions, "
    ".bd-header-version-warning, "
    # Docsy, MDN, and Nextra.
    ".td-page-meta, .td-toc, .code-example > .example-header, .nextra-toc, .nextra-copy-page"
)
_COPY_BUTTONS = (
    "clipboard-copy, [data-clipboard-target], [data-clipboard-text], button[class*=copy i], "
    "button[class*=clipboard i], button[aria-label*=copy i], button[title*=copy i], pre button, pre + button, "
    "[class*=code i] > button, [class*=highlight i] > button, [class*=language-] > button, .theme-code-block button"
)
"""Buttons that copy code."""
_FOR_SCREEN_READERS = (
    *("sr-only", "visually-hidden", "visuallyhidden", "visually_hidden", "screen-reader", "screenreader"),
    *("show-for-sr", "element-invisible", "hidden-visually", "assistive-text", "a11y-hidden"),
)
"""Parts of the classes of text that only screen readers present."""
_HIDDEN_TEXT = ", ".join(
    f"{tag} [class*={name} i]:not([class*=not-sr-only])" for tag in ("a", "button") for name in _FOR_SCREEN_READERS
)
_PERMALINKS = (
    "a.headerlink, a.permalink, a.heading-permalink, a.header-permalink, a.hash-link, a.hashlink, a.anchor-link, "
    "a.anchorjs-link, a.heading-anchor, a.header-anchor"
)
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))

_REMOVED = (
    f"[id^=sp_message_container_], [data-hook=ccsu-banner-wrapper], {_DOCUMENTATION}, {_COPY_BUTTONS}, {_HIDDEN_TEXT}"
)


def remove_tool_parts(document: Document) -> None:
    """Remove the parts that tools add to a page, and the text of permalinks in headings."""
    for element in document.select(_OUTER_ELEMENTS):
        names = (element.attr("id") or "", *(element.attr("class") or "").split())
        if not _CONSENT_TOOLS.isdisjoint(names):
            element.decompose()
    document.remove(_REMOVED)
    for link in document.select(_PERMALINKS):
        if (link.attr("href") or "").startswith("#") and _is_beside_heading(link):
            # The empty link is still a sign that the element around it is a section.
            for child in list(link.children):
                child.extract()


def _is_beside_heading(link: Element) -> bool:
    """Whether a link is in a heading that has other text, or directly after a heading."""
    parent, before = link.parent, link.previous_sibling
    if isinstance(parent, Element) and parent.tag in _HEADINGS:
        return parent.text.strip() != link.text.strip()
    return isinstance(before, Element) and before.tag in _HEADINGS
