"""Text from HTML and Markdown, and sections by headings."""
