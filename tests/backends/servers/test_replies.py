"""Unsuccessful server replies become backend errors, with the server's refusal as the cause."""

from __future__ import annotations

from typing import Any

import pytest

from backends.base import Hit
from backends.errors import BackendMisconfigured, BackendUnavailable, IndexNotFound, UnreadableReply
from backends.query import SearchQuery
from backends.servers.http import Response
from backends.servers.replies import Refusal, checked, hits_of, readable, translated


class Refused(Refusal):
    @property
    def is_missing_index(self) -> bool:
        return self.args == ("gone",)


def refusal_of(status: int, reply: Any) -> Refused:
    return Refused(reply["why"])


def test_successful_reply_is_returned_unchanged() -> None:
    answer = Response(204, b"")

    assert checked(answer, refusal_of) is answer


@pytest.mark.parametrize(
    ("status", "body", "raised"),
    [
        (404, b'{"why": "gone"}', Refused),
        (403, b'{"why": "gone"}', BackendMisconfigured),
        (302, b'{"why": "gone"}', UnreadableReply),
        (400, b'{"why', UnreadableReply),
        (400, b"{}", UnreadableReply),
        (400, b"[]", UnreadableReply),
    ],
)
def test_unsuccessful_reply_raises_the_matching_error(status: int, body: bytes, raised: type[Exception]) -> None:
    with pytest.raises(raised):
        checked(Response(status, body), refusal_of)


def test_missing_index_refusal_raises_index_not_found_and_others_raise_unavailable() -> None:
    with pytest.raises(IndexNotFound, match="pages"), translated("pages"):
        raise Refused("gone")
    with pytest.raises(BackendUnavailable, match="rejected a request of this service") as caught, translated("pages"):
        raise Refused("unknown parameter")
    assert isinstance(caught.value.__cause__, Refused)
    with pytest.raises(BackendUnavailable), translated():
        raise Refused("gone")


@pytest.mark.parametrize("error", [KeyError("hits"), TypeError(), ValueError(), AttributeError(), IndexError()])
def test_reply_with_a_missing_part_raises_unreadable_reply(error: Exception) -> None:
    with pytest.raises(UnreadableReply), readable():
        raise error


def test_backend_errors_and_refusals_pass_through_unchanged() -> None:
    with pytest.raises(IndexNotFound), readable():
        raise IndexNotFound("pages")
    with pytest.raises(Refused), readable():
        raise Refused("gone")


def test_hits_are_parsed_lazily() -> None:
    found = [{"id": "1"}, {}]
    hits = hits_of(found, lambda each: Hit(each["id"], b"{}"), SearchQuery("x"))

    assert next(hits).id == "1"
    with pytest.raises(UnreadableReply):
        next(hits)
