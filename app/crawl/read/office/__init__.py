"""Text out of office files and e-books: archives of XML, read as streams within bounds."""
