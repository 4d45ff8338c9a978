"""Tuning a site: its search settings as rows, beside what they find."""
