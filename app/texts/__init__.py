"""Texts out of HTML and Markdown, and the sections under their headings."""
