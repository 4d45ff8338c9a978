"""Examples of every operation and of every error, for the API document: one story of a museum's site.

``requests`` contains the requests in the order of the story, ``answers.json`` the responses, which ``make examples``
records, and ``errors`` one body for each code. The keys and tokens in them are not valid.
"""
