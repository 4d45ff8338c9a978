"""Finding the addresses that a run begins with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.crawl.fetch.addresses import parse_url
from app.crawl.fetch.feeds import fetch_feed
from app.crawl.fetch.sitemaps import Listed, walk_sitemaps
from app.crawl.fetch.values import NotIndexed, Reason
from app.crawl.fetch.wordpress import walk_posts
from app.crawl.read.reader import PageReader
from app.crawl.run.control import RunControl
from app.crawl.run.crawl import Crawl
from app.crawl.run.documents.posts import page_of_post
from app.crawl.run.frontier import LATEST, Found
from app.crawl.run.outcome import Outcome
from app.crawl.run.recorder import Recorder
from app.crawl.run.stored_run import StoredRun
from app.crawl.run.visits.page_reading import field_rules
from app.crawl.run.visits.visitor import Visitor, is_failure
from app.models import Source

STEP = 500


class RunFailed(Exception):
    """A run that cannot be finished.

    Attributes:
        code: A reason of :class:`~app.crawl.fetch.values.Reason`, or an error code.
        message: For the site's owner.
    """

    def __init__(self, code: str, message: str):
        super().__init__(message)
        self.code = str(code)
        self.message = message


class Seeding:
    """Adds the addresses that a source names, or reads the posts that it gives whole."""

    def __init__(
        self,
        source: Source,
        reader: PageReader,
        visitor: Visitor,
        recorder: Recorder,
        crawl: Crawl,
        stored: StoredRun,
        control: RunControl,
    ):
        self._source = source
        self._reader = reader
        self._visitor = visitor
        self._recorder = recorder
        self._crawl = crawl
        self._stored = stored
        self._control = control

    def find(self, urls: Sequence[str] | None) -> None:
        """Find the addresses to begin with.

        Args:
            urls: All that the run is limited to.

        Raises:
            RunFailed: The source cannot be read.
        """
        url = self._source.url
        if urls is not None:
            self._add(map(Listed, urls), depth=0)
        elif self._source.kind == "website":
            self._recorder.add_found([Found(url, 0, modified=LATEST)])  # Before all that its sitemaps date.
            sitemaps = self._sitemaps()
            self._add(self._listed(sitemaps), depth=1, found_on=sitemaps[0] if len(sitemaps) == 1 else None)
        elif self._source.kind == "sitemap":
            self._add(self._listed([url]), depth=0, found_on=url)
        elif self._source.kind == "feed":
            try:
                feed = fetch_feed(self._visitor.fetch_listing, url, self._reader.read_feed)
                self._add(map(Listed, feed), depth=0, found_on=url)
            except NotIndexed as error:
                raise RunFailed(error.reason, error.message) from error
        else:
            self._read_posts()

    def _listed(self, sitemaps: Iterable[str]) -> Iterable[Listed]:
        fetch, read = self._visitor.fetch_listing, self._reader.read_sitemap
        return walk_sitemaps(fetch, sitemaps, self._note_failed_sitemap, read)

    def _add(self, listed: Iterable[Listed], *, depth: int, found_on: str | None = None) -> None:
        step: list[Found] = []
        for each in listed:
            step.append(Found(each.url, depth, found_on, each.modified))
            if len(step) == STEP:
                self._recorder.add_found(step)
                self._control.check()
                step = []
        self._recorder.add_found(step)

    def _sitemaps(self) -> list[str]:
        """The sitemaps of the source's host: those that its robots.txt names, and the usual one."""
        usual = self._usual_sitemap()
        try:
            named = self._visitor.robots.rules(self._source.url).sitemaps(self._source.url)
        except NotIndexed:
            self._stored.note(complete=False)
            return []
        return list(dict.fromkeys((*named, usual)))

    def _usual_sitemap(self) -> str:
        return parse_url("/sitemap.xml", self._source.url).href

    def _note_failed_sitemap(self, url: str, error: NotIndexed) -> None:
        """Put a sitemap that cannot be read into the report; what it lists is not removed unless it is gone."""
        if url == self._source.url and self._source.kind == "sitemap":
            raise RunFailed(error.reason, error.message)
        guessed = self._source.kind == "website" and url == self._usual_sitemap()
        if guessed and (error.reason == Reason.BAD_SOURCE or not is_failure(error.reason)):
            return  # There is none.
        failure = is_failure(error.reason)
        if failure:
            self._stored.note(complete=False)
        self._recorder.add(Outcome(url, "failed" if failure else "skipped", error.reason))

    def _read_posts(self) -> None:
        """Read a blog's posts from its API, which gives them whole."""
        rules = field_rules(self._source)
        try:
            for post in walk_posts(self._visitor.fetch_listing, self._source.url, self._reader.read_posts):
                self._crawl.index_page(post.url, page_of_post(post, rules))
                self._control.check()
        except NotIndexed as error:
            raise RunFailed(error.reason, error.message) from error
