"""Replies of servers that are no success become our errors, with what the server said as the cause."""

from __future__ import annotations

from typing import Any

import pytest

from backends.base import Hit
from backends.errors import BackendMisconfigured, BackendUnavailable, IndexNotFound, UnreadableReply
from backends.servers.http import Response
from backends.servers.replies import Refusal, checked, hits_of, readable, translated


class Refused(Refusal):
    @property
    def is_missing_index(self) -> bool:
        return self.args == ("gone",)


def refusal_of(status: int, reply: Any) -> Refused:
    return Refused(reply["why"])


def test_a_success_is_given_as_it_is() -> None:
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
def test_what_is_no_success_is_raised(status: int, body: bytes, raised: type[Exception]) -> None:
    with pytest.raises(raised):
        checked(Response(status, body), refusal_of)


def test_a_refusal_of_an_index_that_is_not_there_names_it_and_any_other_is_ours() -> None:
    with pytest.raises(IndexNotFound, match="pages"), translated("pages"):
        raise Refused("gone")
    with pytest.raises(BackendUnavailable, match="rejected a request of this service") as caught, translated("pages"):
        raise Refused("unknown parameter")
    assert isinstance(caught.value.__cause__, Refused)
    with pytest.raises(BackendUnavailable), translated():
        raise Refused("gone")


@pytest.mark.parametrize("error", [KeyError("hits"), TypeError(), ValueError(), AttributeError(), IndexError()])
def test_a_reply_without_a_part_cannot_be_read(error: Exception) -> None:
    with pytest.raises(UnreadableReply), readable():
        raise error


def test_our_own_errors_and_refusals_pass() -> None:
    with pytest.raises(IndexNotFound), readable():
        raise IndexNotFound("pages")
    with pytest.raises(Refused), readable():
        raise Refused("gone")


def test_each_hit_is_made_when_it_is_asked_for() -> None:
    found = [{"id": "1"}, {}]
    hits = hits_of(found, lambda each: Hit(each["id"], b"{}"))

    assert next(hits).id == "1"
    with pytest.raises(UnreadableReply):
        next(hits)
