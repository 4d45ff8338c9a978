"""HTML and Markdown are converted to the visible text, at a bounded cost even for hostile markup."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.texts.formats import html_to_marked_text, html_to_text, markdown_to_marked_text, parse_xhtml
from app.texts.sections import take_sections

PIECES = (
    "<p>",
    "</p>",
    "<b>",
    "<table>",
    "<tr>",
    "<td>",
    "<pre>",
    "</pre>",
    "<li>",
    "<svg>",
    "</div>",
    "<!--",
    "<x-y>",
)


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<h1>Harbor</h1><p>Boats <b>leave</b> at ten.</p>", "Harbor\n\nBoats leave at ten."),
        ("<p>un<b>believ</b>able H<sub>2</sub>O</p>", "unbelievable H2O"),
        ("<a><div>one</div><div>two</div></a>three", "one\n\ntwo\n\nthree"),
        ("<span><p>one</p>two</span>", "one\n\ntwo"),
        ("one<br>two", "one\ntwo"),
        ("<ul><li>one<li>two</ul>three", "one\ntwo\n\nthree"),
        ("<ol start=7><li>one<li>two</ol>", "one\ntwo"),
        ("<table><tr><th>a<th>b<tr><td>1<td>2</table>", "a\tb\n1\t2"),
        ("<dl><dt>term<dd>meaning</dl>", "term\n\nmeaning"),
        ("<p>Run<pre>if x:\n    y()  \n\n    z()</pre>now", "Run\n\nif x:\n    y()\n\n    z()\n\nnow"),
        ("<pre><span>a</span>\n<span>b</span></pre>", "a\nb"),
        ("<pre><div>a</div><div>b</div></pre>", "a\nb"),
        ("<p>a<pre> \n </pre>b", "a\n\nb"),
        ("<x-tab>one</x-tab><x-tab>two</x-tab>", "one two"),
        ("<select><option>one<option>two</select>", "one\ntwo"),
        ("a &amp; b&nbsp;c &eacute; &#8364; &lt;b&gt;", "a & b c é € <b>"),
        ("a\n  b\t c", "a b c"),
        ("plain < text & more", "plain < text & more"),
        ("a<script>x()</script><style>p{}</style><!-- c --><template>t</template>b", "ab"),
        ("a<noscript>on</noscript><iframe>f</iframe><svg><title>s</title></svg>", "a"),
        ("<ruby>漢<rp>(<rt>kan<rp>)</ruby>字", "漢字"),
        ("<b>never closed", "never closed"),
        ("a<!-- <p> -->b<? p >c", "abc"),
        ("<p title='<pre>'>a  b</p>c<br title=\"</pre>\">d", "a b\n\nc\nd"),
        ("<pre><b title='</pre>'>a  b</b></pre>c", "a  b\n\nc"),
        ("<pre>&nbsp;a&nbsp;b &amp;lt;</pre>&nbsp;&amp;gt;", "a\N{NO-BREAK SPACE}b &lt;\n\n&gt;"),
        ("a<xmp><b>c</b></xmp>d", "a\n\n<b>c</b>\n\nd"),
        ("a<plaintext><b>c", "a\n\n<b>c"),
        ("<math><mi>a</mi><annotation-xml>b</annotation-xml></math><object>c</object>d", "ad"),
        ("a<br<!-- x>b<!-- c -->d", "a bd"),
        ("a\ud800b\0c", "a\ufffdbc"),
        ("", ""),
        ("<details><summary>More</summary>text</details><dialog open>notice</dialog>", "More\ntext\n\nnotice"),
        ("a<slot>fallback</slot>", "a fallback"),
        ("<span role=cell>one</span><span role=cell>two</span>", "one\ttwo"),
        ("<b role='listitem'>one</b><b role='listitem'>two</b>", "one\ntwo"),
        ("<span>text</span><span role=heading>Harbor", "text\n\nHarbor"),
        ("<span class=label>Price</span><span class=value>12</span>", "Price 12"),
        ("<li><a href=1>one</a><a href=2>two</a><li>3", "one two\n3"),
        ("<time>10:00</time><span class=divider></span><time>11:00</time>", "10:00 11:00"),
        ("Home<i class=chevron></i>Docs", "Home Docs"),
        ("<div><span>Price</span><span>12</span></div>", "Price 12"),
        ("<b>Status</b><span>Open</span>", "Status Open"),
        ("<span class=icon>C</span><a href=x>Crane</a>", "C Crane"),
        ("<span class=dropcap>T</span><span class=rest>he", "The"),
        ("<b class=split>H</b><b class=split>A</b><b class=split>R</b>", "HAR"),
        ("un<b>believ</b><i>able</i> H<sub>2</sub><b>O</b> 10<span class=unit></span>px", "unbelievable H2O 10 px"),
        (
            '<span class="SpellE">Har</span><span class="SpellE">bor</span> <b class=c1>Har</b><b class=c2>bor</b>',
            "Harbor Harbor",
        ),
        ('<code><b class="token number">10</b><b class="token unit">px</b></code>', "10px"),
        ('<code>\\x</code><em class="replaceable"><code>digits</code></em>', "\\xdigits"),
        ("<a href=x>note</a><sup class=footnote>2</sup>", "note2"),
        ("<span class=label>one</span>, <span class=label>two</span>-<b class=label>three</b>", "one, two-three"),
    ],
)
def test_html_is_converted_to_its_visible_text(html: str, text: str) -> None:
    assert html_to_text(html) == text


SHADOW = "<template shadowrootmode={}><h2 id=x>Crane</h2><slot name=a>Nobody</slot><slot>Nothing</slot></template>"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (f"<x-a>{SHADOW.format('open')}boats <b>leave</b><i slot=a>Ann</i></x-a>", "Crane\n\nAnn boats leave"),
        (f"<div>{SHADOW.format('closed')}</div>", "Crane\n\nNobody Nothing"),
        (f"<x-a>{SHADOW.format('open')}<i slot=other>lost</i></x-a>", "Crane\n\nNobody Nothing"),
        (f"<ul>{SHADOW.format('open')}<li>kept</ul>", "kept"),
        (f"<x-a>{SHADOW.format('open')}{SHADOW.format('open')}one</x-a>", "Crane\n\nNobody one"),
        (
            "<x-a><template shadowrootmode=open><x-b><template shadowrootmode=open>b: <slot>no</slot></template><slot>"
            "</slot></x-b></template>text</x-a>",
            "b: text",
        ),
        ("<template><x-a><template shadowrootmode=open>no</template></x-a></template>yes", "yes"),
    ],
)
def test_declarative_shadow_trees_are_displayed_with_their_slots(html: str, text: str) -> None:
    assert html_to_text(html) == text


def test_headings_of_aria_are_sections_and_those_in_shadow_trees_are_not() -> None:
    marked = html_to_marked_text(
        "<div role=heading aria-level=3 id=a>One</div><span role=heading id=b>Two</span>"
        "<x-a><template shadowrootmode=open><h2 id=c>Three</h2></template></x-a>"
    )
    text, sections = take_sections(marked)

    assert text == "One\n\nTwo\n\nThree"
    assert [(each.anchor, each.level) for each in sections] == [("a", 3), ("b", 2)]


def markdown_to_text(markdown: str) -> str:
    """Return the text without heading markers."""
    return take_sections(markdown_to_marked_text(markdown))[0]


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("# Harbor\n\nBoats *leave* at [ten](/times).", "Harbor\n\nBoats leave at ten."),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "a\tb\n1\t2"),
        ("Run\n\n```python\nif x:\n    y('<b>')\n```", "Run\n\nif x:\n    y('<b>')"),
        ("one <b>two</b>\n\n<script>x()</script>\n\nthree", "one two\n\nthree"),
        ("---\nlayout: page\n---\n\nThe text.", "The text."),
        ("- [x] done\n- [ ] open ~~never~~", "done\nopen never"),
        ("a &amp; b \\* c", "a & b * c"),
        ("a\ud800b", "a\ufffdb"),
    ],
)
def test_markdown_is_converted_to_its_visible_text(markdown: str, text: str) -> None:
    assert markdown_to_text(markdown) == text


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 100_000 + "deep",
        "".join(f"<b id={n}>" for n in range(50_000)) + "deep",
        "<table><tr><td>" * 30_000 + "deep",
        "<p " + " ".join(f"a{n}" for n in range(100_000)) + ">deep",
        "<div>" * 20_000 + "<b></div>" * 50_000 + "deep",
        "<table>" + "<tr><td>x" * 3_000 + "<tr>" + "<td>x" * 30_000 + "</table>deep",
        "<blockquote>" * 64 + "<p>x" * 50_000 + "<p>deep",
        "<ul><li>" * 30_000 + "deep",
        "<!--" * 100_000 + "--><p>deep",
    ],
)
def test_hostile_markup_is_converted_to_text_no_longer_than_the_markup(html: str) -> None:
    text = html_to_text(html)

    assert text.endswith("deep")
    assert len(text) <= len(html)


SIZE = 1_000_000
TIMES_PLAIN = 150
"""Maximum ratio of the time for hostile markup to the time for plain text of the same length."""
HOSTILE_MARKUP = {
    "paragraphs": "<p>",
    "formatted paragraphs": "<b><p>",
    "nested blocks": "<div>",
    "nested tables": "<table><tr><td>",
    "text beside tables": "<table>a<b>",
    "roots": lambda n: f"<html a{n}=1>",
    "bodies": lambda n: f"<body a{n}=1>",
    "attributes of two roots": lambda n: f"<html {' '.join(f'a{n}b{m}' for m in range(60_000))}>",
    "nested headings": "<h1><div>",
    "headings": "<h2>a</h2>",
    "sections": "<section><h2>a</h2>",
    "named links": "<h1><a name=a>",
    "preformatted text": "<pre>a</pre>",
    "nested preformatted text": "<pre>",
    "names": "<a<pre>",
    "comments": "<!--",
    "references": "&amp;lt;",
    "shadow trees": "<x-a><template shadowrootmode=open>a",
    "shadow trees with slots": "<x-a><template shadowrootmode=open><slot></slot></template>a",
    "elements in a row": "<b class=label>a</b>",
    "links in a row": lambda n: f"</a><a href={n}>",
    "classes": "<b class='labe'><b ",
}
HOSTILE_XML = {
    "paragraphs": "<p>",
    "comments": "<!--",
    "sections of text": "<![CDATA[",
    "instructions": "<?",
    "references": "&a",
    "namespaces": "xmlns:a ",
    "attributes": lambda n: f" a{n}=''" if n else "<html",
    "equals signs": "=",
    "nested paragraphs": lambda n: "<html><p>" if n == 0 else "<p>" if n < SIZE // 14 else "</p>",
}
HOSTILE_MARKDOWN = {
    "quotes": "> ",
    "quotes without blanks": ">",
    "lists": "* - + ",
    "numbered lists": "1. ",
    "quotes and lists": "> - 1) ",
    "quotes of code": ">\t",
    "brackets": "[",
    "links": "[a](b",
    "emphasis": "**a*b",
    "tables": "a|b\n-|-\n",
    "references": "[^a]",
    "footnotes": lambda n: f"[^{n}]: a\n\n",
    "fences": "```\n",
    "headings": "# a\n",
    "indented lists": lambda n: "  " * (n % 500) + "- a\n",
}


def long(piece: str | Callable[[int], str]) -> str:
    """Repeat a piece up to one megabyte."""
    if isinstance(piece, str):
        return piece * (SIZE // len(piece))
    found: list[str] = []
    length = 0
    for number in count():
        found.append(piece(number))
        length += len(found[-1])
        if length >= SIZE:
            break
    return "".join(found)


def cpu_seconds(read: Callable[[str], object], source: str) -> float:
    """Return the CPU seconds that a conversion takes."""
    begun = time.process_time()
    read(source)
    return time.process_time() - begun


@pytest.mark.slow
@pytest.mark.parametrize(
    ("read", "piece"),
    [
        *(
            pytest.param(read, piece, id=f"HTML: {name}, {read.__name__}")
            for name, piece in HOSTILE_MARKUP.items()
            for read in (html_to_text, html_to_marked_text)
        ),
        *(pytest.param(parse_xhtml, piece, id=f"XML: {name}") for name, piece in HOSTILE_XML.items()),
        *(
            pytest.param(read, piece, id=f"Markdown: {name}, {read.__name__}")
            for name, piece in HOSTILE_MARKDOWN.items()
            for read in (markdown_to_marked_text,)
        ),
    ],
)
def test_converting_hostile_markup_has_a_time_limit(
    read: Callable[[str], object], piece: str | Callable[[int], str]
) -> None:
    words = min(cpu_seconds(html_to_text, "a b " * (SIZE // 4)) for _ in range(3))

    assert cpu_seconds(read, long(piece)) < TIMES_PLAIN * words


@pytest.mark.parametrize("signs", ["> " * 90, "- " * 90, "1. > " * 40])
def test_markdown_keeps_text_in_deeply_nested_quotes_and_lists(signs: str) -> None:
    assert markdown_to_text(f"{signs}deep *text*") == "deep text"


@pytest.mark.parametrize("code", [">>>> " * 25, "----" * 100, "1.5 " * 200])
def test_markdown_syntax_in_code_is_kept(code: str) -> None:
    assert markdown_to_text(f"```\n{code}.\n```") == f"{code}."


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8)), max_size=60).map("".join))
def test_any_text_can_be_converted_as_html_and_markdown(source: str) -> None:
    for text in (html_to_text(source), markdown_to_text(source)):
        text.encode()
        assert text == text.strip()
        assert "\0" not in text


@given(
    st.lists(st.from_regex(r"[a-z]{1,8}", fullmatch=True), min_size=1, max_size=20),
    st.sampled_from(["p", "li", "td", "div"]),
)
def test_conversion_neither_loses_nor_joins_words(words: list[str], tag: str) -> None:
    inside = "".join(f"<{tag}>{word}</{tag}>" for word in words)
    html = f"<table><tr>{inside}</table>" if tag == "td" else inside

    assert html_to_text(html).split() == words


def test_characters_of_icon_fonts_are_not_text() -> None:
    html = "<p><i class=fa>&#xf0c5;</i> Copy \ue001this\U000f0001 now</p><pre>\uf120 $ pip install</pre>"
    assert html_to_text(html).split() == ["Copy", "this", "now", "$", "pip", "install"]
