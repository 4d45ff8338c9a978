"""Google's Custom Search JSON API, over whichever engine runs."""
