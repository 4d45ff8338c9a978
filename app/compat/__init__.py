"""APIs compatible with other search services: the Model Context Protocol, Google's Custom Search, and Algolia."""
