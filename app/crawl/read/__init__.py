"""From the body of an answer to a page: its text, and what it says of itself. Nothing here reads the network."""
