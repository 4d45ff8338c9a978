"""Examples of every operation and of every error, for the API document: one story of a museum's site.

``requests`` has what is sent, in the order of the story; ``answers.json`` what the service answered, recorded by
``make examples``; ``errors`` one body for each code. Nothing in them is a secret that could work.
"""
