"""Google's Custom Search JSON API on top of any engine."""
