"""From a page to its document, and writing the documents of a source."""
