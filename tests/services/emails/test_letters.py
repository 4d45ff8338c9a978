"""Content of emails as text and as HTML."""

from __future__ import annotations

from app.services.emails.letters import Letter, Link, Listing

LETTER = Letter(
    "News <of> today",
    (
        "A paragraph that is longer than one line of a mail may be, since people read it in narrow windows.",
        Link("Your sites", "https://search.example.com/sites?a=1&b=" + "x" * 90),
        Listing("Not found on A & B:", ("“<script>” (2 searches)", "“parking” (1 search)")),
    ),
)


def test_plain_text_email_wraps_lines_but_not_links() -> None:
    assert LETTER.text == (
        "A paragraph that is longer than one line of a mail may be, since people\n"
        "read it in narrow windows.\n"
        "\n"
        "Your sites:\n"
        f"https://search.example.com/sites?a=1&b={'x' * 90}\n"
        "\n"
        "Not found on A & B:\n"
        "- “<script>” (2 searches)\n"
        "- “parking” (1 search)\n"
    )


def test_html_email_has_the_same_content_escaped() -> None:
    assert "<p>A paragraph that is longer" in LETTER.html
    assert f'<a href="https://search.example.com/sites?a=1&amp;b={"x" * 90}">Your sites</a>' in LETTER.html
    assert "<p>Not found on A &amp; B:</p>\n<ul>\n<li>“&lt;script&gt;” (2 searches)</li>" in LETTER.html
    assert "<title>News &lt;of&gt; today</title>" in LETTER.html


def test_html_email_loads_no_external_resources() -> None:
    assert "src=" not in LETTER.html
    assert "<link" not in LETTER.html
