"""Answers in sentences, which a language model writes from a site's pages."""
