"""Export files of other systems."""

from __future__ import annotations

from html import escape

WXR_HEAD = """<?xml version="1.0" encoding="UTF-8" ?>
<!-- generator="WordPress/6.6" created="2024-05-01 10:00" -->
<rss version="2.0"
	xmlns:excerpt="http://wordpress.org/export/1.2/excerpt/"
	xmlns:content="http://purl.org/rss/1.0/modules/content/"
	xmlns:wfw="http://wellformedweb.org/CommentAPI/"
	xmlns:dc="http://purl.org/dc/elements/1.1/"
	xmlns:wp="http://wordpress.org/export/1.2/">
<channel>
	<title>Museum</title>
	<link>https://museum.example</link>
	<wp:wxr_version>1.2</wp:wxr_version>
	<wp:author><wp:author_id>1</wp:author_id><wp:author_login><![CDATA[ann]]></wp:author_login>
	<wp:author_email><![CDATA[ann@museum.example]]></wp:author_email>
	<wp:author_display_name><![CDATA[Ann Annan]]></wp:author_display_name></wp:author>
	<wp:category><wp:category_nicename>news</wp:category_nicename></wp:category>
"""
WXR_END = "</channel>\n</rss>\n"


def wxr_item(
    number: int,
    title: str = "A page",
    content: str = "<p>Text.</p>",
    *,
    link: str | None = None,
    status: str = "publish",
    kind: str = "page",
    password: str = "",
    date_gmt: str = "2024-05-01 08:00:00",
    more: str = "",
) -> str:
    """Return an item of a WordPress export."""
    address = f"https://museum.example/{number}/" if link is None else link
    return f"""	<item>
		<title><![CDATA[{title}]]></title>
		<link>{escape(address)}</link>
		<pubDate>Wed, 01 May 2024 10:00:00 +0200</pubDate>
		<dc:creator><![CDATA[ann]]></dc:creator>
		<guid isPermaLink="false">https://museum.example/?p={number}</guid>
		<description></description>
		<content:encoded><![CDATA[{content}]]></content:encoded>
		<excerpt:encoded><![CDATA[]]></excerpt:encoded>
		<wp:post_id>{number}</wp:post_id>
		<wp:post_date><![CDATA[2024-05-01 10:00:00]]></wp:post_date>
		<wp:post_date_gmt><![CDATA[{date_gmt}]]></wp:post_date_gmt>
		<wp:status><![CDATA[{status}]]></wp:status>
		<wp:post_type><![CDATA[{kind}]]></wp:post_type>
		<wp:post_password><![CDATA[{password}]]></wp:post_password>
		{more}
	</item>
"""


def wxr(*items: str) -> bytes:
    """Return a WordPress export."""
    return (WXR_HEAD + "".join(items) + WXR_END).encode()
