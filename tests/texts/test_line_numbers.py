"""Line numbers beside code are not text, and its lines stay lines, whatever highlighter wrote them."""

from __future__ import annotations

import pytest

from app.texts.formats import html_to_text

CODE = ("kubectl apply", "  import asyncio", "run 12")
BODY = "\n".join(CODE)
COLUMN = "1\n2\n3\n"


def lines(template: str) -> str:
    """Fill a template for each line of code."""
    return "".join(template.format(number, code) for number, code in enumerate(CODE, 1))


@pytest.mark.parametrize(
    "html",
    [
        lines('<span class="line"><span class="ln">{}</span><span class="cl">{}\n</span></span>'),  # Hugo.
        lines('<span class="linenos">{}</span>{}\n'),  # Pygments.
        lines('<span class="lineno">{} </span>{}\n'),
        lines('<span class="source-line-no">00{}</span><span>{}</span>\n'),  # Javadoc.
        lines('<div class="token-line"><span class="line-number">{}</span>{}</div>'),  # Prism.
        lines('<span class="linenumber react-syntax-highlighter-line-number">{}</span>{}\n'),
        lines('<div class="ec-line"><div class="gutter"><div class="ln">{}</div></div><div>{}</div></div>'),
        lines('<a href="#{0}" id="{0}">{0}</a>{1}\n'),  # rustdoc.
        lines('<span class="CodeLine_lineNo__x9Abc">{}</span>{}\n'),
        "<table>" + lines('<tr><td class="hljs-ln-numbers">{}</td><td class="hljs-ln-code">{}</td></tr>') + "</table>",
    ],
)
def test_line_numbers_within_code_do_not_grow_onto_its_words(html: str) -> None:
    assert html_to_text(f"<pre><code>{html}</code></pre>") == BODY


@pytest.mark.parametrize(
    "column",
    [
        f'<td class="lntd"><pre><code>{lines("<span class=lnt>{}</span>")}</code></pre></td>',  # Hugo.
        f'<td class="linenos"><div class="linenodiv"><pre>{COLUMN}</pre></div></td>',  # Pygments.
        f'<td class="rouge-gutter gl"><pre class="lineno">{COLUMN}</pre></td>',  # Rouge.
        '<td class="line-numbers"><pre><a href="#n1">1</a>\n<a href="#n2">2</a></pre></td>',  # CodeRay.
        f'<td class="gutter">{lines("<div class=line>{0}</div>")}</td>',  # SyntaxHighlighter, Confluence.
        f'<td class="crayon-nums"><div>{lines("<div class=crayon-num>{0}</div>")}</div></td>',
        f'<th class="lineno"><pre>{COLUMN}</pre></th>',
        f'<td class="linenumbers"><pre>{COLUMN}</pre></td>',  # cgit.
    ],
)
def test_column_of_line_numbers_is_not_text(column: str) -> None:
    assert html_to_text(f"<table><tr>{column}<td><pre>{BODY}</pre></td></tr></table>") == BODY


@pytest.mark.parametrize(
    "row",
    ['<td class="blob-num">{}</td><td>{}</td>', '<td><a href="#L{0}">{0}</a></td><td>{1}</td>'],
)
def test_line_numbers_in_rows_of_a_table_are_not_text(row: str) -> None:
    assert html_to_text(f"<table>{lines(f'<tr>{row}</tr>')}</table>").split() == BODY.split()


@pytest.mark.parametrize(
    "html",
    [
        "<span class=line-number>12</span> to the harbor",
        "<pre><span class=hljs-number>12</span> to the harbor</pre>",
        "<pre><code><span class=line>12</span> to the harbor</code></pre>",
        "<pre><span class=ln>12 or 13</span></pre>",
        "<table><tr><td class=number>12</table>",
        "<table><tr><td><a href='#fn-12'>12</a></table>",
        "<p class=ln>12",
    ],
)
def test_other_numbers_stay(html: str) -> None:
    assert "12" in html_to_text(html)


@pytest.mark.parametrize(
    "template",
    [
        "{1}\n",
        "{1}<br>",
        "<div>{1}</div>",
        "<span class=line>{1}</span>\n",
        "<span class=line>{1}\n</span>",
        "<span class=line>{1}</span>",
        "<span class='token-line' style='display:block'>{1}</span>",
        "<span data-line='{0}' class='code-line x'><span>{1}</span></span>",
    ],
)
def test_lines_of_code_stay_lines(template: str) -> None:
    assert html_to_text(f"<pre><code>{lines(template)}</code></pre>") == BODY


def test_parts_of_a_line_stay_on_their_line() -> None:
    assert html_to_text("<pre><span class=kw>let</span><span class=outline>x</span> = 1") == "letx = 1"
