"""Reading files of documents, as other systems export them: bytes in, raw documents and named bad lines out."""
