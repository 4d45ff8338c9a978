"""Unsuccessful server responses become backend errors, with the server's rejection as the cause."""

from __future__ import annotations

from typing import Any

import pytest

from backends.base import Hit
from backends.errors import BackendMisconfigured, BackendUnavailable, IndexNotFound, UnreadableResponse
from backends.query import SearchQuery
from backends.servers.http import Response
from backends.servers.responses import ServerRejection, checked, hits_of, readable, translated


class FakeRejection(ServerRejection):
    @property
    def is_missing_index(self) -> bool:
        return self.args == ("gone",)


def make_rejection(status: int, body: Any) -> FakeRejection:
    return FakeRejection(body["why"])


def test_successful_response_is_returned_unchanged() -> None:
    response = Response(204, b"")

    assert checked(response, make_rejection) is response


@pytest.mark.parametrize(
    ("status", "body", "raised"),
    [
        (404, b'{"why": "gone"}', FakeRejection),
        (403, b'{"why": "gone"}', BackendMisconfigured),
        (302, b'{"why": "gone"}', UnreadableResponse),
        (400, b'{"why', UnreadableResponse),
        (400, b"{}", UnreadableResponse),
        (400, b"[]", UnreadableResponse),
    ],
)
def test_unsuccessful_response_raises_the_matching_error(status: int, body: bytes, raised: type[Exception]) -> None:
    with pytest.raises(raised):
        checked(Response(status, body), make_rejection)


def test_missing_index_rejection_raises_index_not_found_and_others_raise_unavailable() -> None:
    with pytest.raises(IndexNotFound, match="pages"), translated("pages"):
        raise FakeRejection("gone")
    with pytest.raises(BackendUnavailable, match="rejected a request of this service") as caught, translated("pages"):
        raise FakeRejection("unknown parameter")
    assert isinstance(caught.value.__cause__, FakeRejection)
    with pytest.raises(BackendUnavailable), translated():
        raise FakeRejection("gone")


@pytest.mark.parametrize("error", [KeyError("hits"), TypeError(), ValueError(), AttributeError(), IndexError()])
def test_response_with_a_missing_part_raises_unreadable_response(error: Exception) -> None:
    with pytest.raises(UnreadableResponse), readable():
        raise error


def test_backend_errors_and_rejections_pass_through_unchanged() -> None:
    with pytest.raises(IndexNotFound), readable():
        raise IndexNotFound("pages")
    with pytest.raises(FakeRejection), readable():
        raise FakeRejection("gone")


def test_hits_are_parsed_lazily() -> None:
    found = [{"id": "1"}, {}]
    hits = hits_of(found, lambda each: Hit(each["id"], b"{}"), SearchQuery("x"))

    assert next(hits).id == "1"
    with pytest.raises(UnreadableResponse):
        next(hits)
