"""Tell whether this process can do its work now."""

from __future__ import annotations

from sqlalchemy import select, text

from app.counters.base import CounterStore
from app.models import Site
from app.services.engines import Engines
from app.storage.database import Database
from backends.errors import BackendUnavailable, IndexNotFound

SAMPLE = 3
"""Sites whose index is compared with SQL: an engine that answers may still be loading its documents."""


def check_readiness(database: Database, counters: CounterStore, engines: Engines) -> None:
    """Return if database, counters and search engine can work.

    Raises:
        SQLAlchemyError: The database cannot.
        CountersUnavailable: The counter store cannot.
        BackendUnavailable: The engine cannot, or does not have its documents back yet.
    """
    with database.read() as session:
        session.execute(text("SELECT 1"))
        largest = session.scalars(
            select(Site)
            .where(Site.applied_revision == Site.revision, Site.document_count > 0)
            .order_by(Site.document_count.desc())
            .limit(SAMPLE)
        ).all()
    counters.check()
    for engine in engines.all():
        engine.check()
    for site in largest:
        holder = engines.get_engine(site.engine)
        if not holder.persistent:
            continue
        try:
            count = holder.count(site.engine_index)
        except IndexNotFound:
            continue  # It is rebuilt from SQL at the next search.
        if count < site.document_count:
            raise BackendUnavailable("The search engine is still loading its documents.", retry_after=5)
