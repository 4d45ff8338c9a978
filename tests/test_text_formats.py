"""What a person reads on a page comes out as text; markup, and the cost of bad markup, stay behind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.text_formats import html_to_text, markdown_to_text

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
        ("a\ud800b\0c", "a\ufffdbc"),
        ("", ""),
    ],
)
def test_html_becomes_what_is_read(html: str, text: str) -> None:
    assert html_to_text(html) == text


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
def test_markdown_becomes_what_is_read(markdown: str, text: str) -> None:
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
def test_text_of_hostile_markup_is_no_longer_than_the_markup(html: str) -> None:
    text = html_to_text(html)

    assert text.endswith("deep")
    assert len(text) <= len(html)


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8)), max_size=60).map("".join))
def test_any_text_can_be_read_as_html_and_markdown(source: str) -> None:
    for text in (html_to_text(source), markdown_to_text(source)):
        text.encode()
        assert text == text.strip()
        assert "\0" not in text


@given(
    st.lists(st.from_regex(r"[a-z]{1,8}", fullmatch=True), min_size=1, max_size=20),
    st.sampled_from(["p", "li", "td", "div"]),
)
def test_no_word_is_lost_or_joined(words: list[str], tag: str) -> None:
    inside = "".join(f"<{tag}>{word}</{tag}>" for word in words)
    html = f"<table><tr>{inside}</table>" if tag == "td" else inside

    assert html_to_text(html).split() == words
