"""The crawler: fetches and reads the pages of a site, runs its sources, and manages their queue."""
