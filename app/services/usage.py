"""Usage of an account."""

from __future__ import annotations

import re

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.errors import ApiError, ErrorCode
from app.models import Site
from app.services.sites import listed

_INDEX = re.compile(r"site_([1-9][0-9]{0,18})(?:_[0-9a-z_]{1,44})?", re.ASCII)


def find_index(session: Session, account_id: int, index: str) -> int:
    """The site whose index is called ``index``, by its lasting name or the engine's.

    Raises:
        ApiError: 404 ``index_not_found`` if the account has none of that name.
    """
    match = _INDEX.fullmatch(index)
    site_id = int(match[1]) if match else 0
    if 0 < site_id < 2**63:
        site = session.scalar(select(Site).where(Site.id == site_id, listed(account_id)))
        if site is not None and index in (site.index, site.engine_index):
            return site.id
    raise ApiError(ErrorCode.INDEX_NOT_FOUND, "Index not found.")
