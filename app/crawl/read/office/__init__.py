"""Text from office files and e-books: ZIP archives of XML, read as streams within limits."""
