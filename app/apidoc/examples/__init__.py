"""Examples of all operations and errors for the OpenAPI document, which tell the story of a museum's site.

``requests`` contains the requests in the order of the story, ``answers.json`` the responses recorded by
``make examples``, and ``errors`` one body for each error code. The keys and tokens in them are not valid.
"""
