"""The promises of :mod:`backends.base`, as one suite for every engine, one module per feature.

An engine's test module inherits :class:`BackendContract` and gives one fixture, ``backend``. What only an engine
that does its own matching can promise is in :class:`MatchingContract`. Filters are passed as trees, which every
engine compiles; an engine without a syntax of its own gets the text too.
"""

from __future__ import annotations

from tests.backends.contract.case import SHOP, Case, case_fixture, has_native_filters, page
from tests.backends.contract.concurrency import ConcurrencyContract
from tests.backends.contract.distinct import DistinctContract
from tests.backends.contract.facets import FacetContract
from tests.backends.contract.filters import FilterContract
from tests.backends.contract.highlighting import HighlightContract
from tests.backends.contract.hits import HitContract
from tests.backends.contract.indexes import IndexContract
from tests.backends.contract.letters import LetterContract
from tests.backends.contract.matched import MatchedContract
from tests.backends.contract.matching import CommonMatchingContract, MatchingContract
from tests.backends.contract.passages import PassageContract
from tests.backends.contract.ranks import RanksContract
from tests.backends.contract.sections import SectionContract
from tests.backends.contract.sorting import SortContract
from tests.backends.contract.titles import TitleContract
from tests.backends.contract.writes import WriteContract

__all__ = ["SHOP", "BackendContract", "Case", "MatchingContract", "case_fixture", "has_native_filters", "page"]


class BackendContract(
    IndexContract,
    LetterContract,
    WriteContract,
    HitContract,
    CommonMatchingContract,
    MatchedContract,
    FilterContract,
    SortContract,
    FacetContract,
    HighlightContract,
    TitleContract,
    PassageContract,
    SectionContract,
    DistinctContract,
    RanksContract,
    ConcurrencyContract,
):
    """What every engine promises."""
