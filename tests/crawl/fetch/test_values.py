"""Reasons appear in reports and are stored in the database."""

from app.crawl.fetch.values import NotIndexed, Reason, http_reason
from app.models import RunPage


def test_every_reason_fits_its_database_column() -> None:
    longest = RunPage.__table__.c.reason.type.length

    assert all(len(reason) <= longest for reason in [*Reason, http_reason(599)])


def test_not_indexed_error_has_the_reason_as_clients_see_it() -> None:
    assert NotIndexed(Reason.SOFT_404, "The page says that it was not found.").reason == "soft_404"
    assert NotIndexed(http_reason(410), "Gone.").reason == "http_410"
