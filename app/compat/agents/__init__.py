"""A site for agents: its search as tools of the Model Context Protocol, and its pages as files of text."""
