"""A site for AI agents: search tools of the Model Context Protocol, and pages as text files."""
