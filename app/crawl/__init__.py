"""A site fills itself: what fetches its pages, reads them, runs its sources, and keeps their queue."""
