"""What the search servers share: HTTP, URLs, ids."""
