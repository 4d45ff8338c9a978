"""The contract of :mod:`backends.base` as one test suite for every engine, with one module per feature.

An engine's test module inherits :class:`BackendContract` and defines the fixture ``backend``.
:class:`MatchingContract` applies only to engines that match words in our own code. Filters are passed as trees, which
every engine compiles; engines without a native syntax also get the text.
"""

from __future__ import annotations

from tests.backends.contract.agreement import AgreementContract
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
from tests.backends.contract.related import RelatedContract
from tests.backends.contract.scores import ScoreContract
from tests.backends.contract.sections import SectionContract
from tests.backends.contract.sorting import SortContract
from tests.backends.contract.titles import TitleContract
from tests.backends.contract.writes import WriteContract

__all__ = ["SHOP", "BackendContract", "Case", "MatchingContract", "case_fixture", "has_native_filters", "page"]


class BackendContract(
    AgreementContract,
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
    RelatedContract,
    PassageContract,
    ScoreContract,
    SectionContract,
    DistinctContract,
    RanksContract,
    ConcurrencyContract,
):
    """The contract that every engine fulfills."""
