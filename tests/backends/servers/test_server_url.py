"""URLs of server engines."""

from __future__ import annotations

import pytest

from backends.servers.server_url import ServerUrl


def test_url_is_parsed_into_nodes_key_and_timeouts() -> None:
    url = ServerUrl.parse(
        "typesense://:k%40y%2F1@B:1,a?timeout_seconds=2.5&connect_timeout_seconds=0.5&send_timeout_seconds=7",
        default_port=8108,
    )
    assert (url.nodes, url.key) == (("http://b:1", "http://a:8108"), "k@y/1")
    assert (url.connect_timeout_seconds, url.send_timeout_seconds, url.timeout_seconds) == (0.5, 7.0, 2.5)
    assert ServerUrl.parse("typesense+https://:k@a", default_port=8108).nodes == ("https://a:8108",)
    assert ServerUrl.parse("typesense://:k@[::1]:9", default_port=1).nodes == ("http://[::1]:9",)


def test_identity_depends_only_on_the_engine_and_name() -> None:
    one = ServerUrl.parse("typesense://:secret@a:1,b:2", default_port=8108)
    two = ServerUrl.parse("typesense://:other@c:2?timeout_seconds=9", default_port=8108)
    named = ServerUrl.parse("typesense://:secret@a:1?name=new-2", default_port=8108)
    assert (one.identity, two.identity, named.identity) == ("typesense", "typesense", "typesense:new-2")
    assert "secret" not in one.identity + repr(one) + str(one)


@pytest.mark.parametrize("url", [
    "typesense://", "typesense://a:8108", "typesense://user:sekret@a", "typesense://:sekret@", "typesense://:sekret@a:0",
    "typesense://:sekret@a:99999", "typesense://:sekret@a,a", "typesense://:sekret@a/path", "typesense://:sekret@a?x=1",
    "typesense://:sekret@a?timeout_seconds=0", "typesense://:sekret@a?timeout_seconds=nan", "typesense://:sekret@a b",
    "typesense://:sekret@a?ca_file=/x", "typesense://:sekret@a?name=A", "typesense://:sekret@a?name=a:b", "typesense://:@a",
])  # fmt: skip
def test_invalid_url_is_rejected_without_revealing_its_key(url: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        ServerUrl.parse(url, default_port=8108)
    assert "sekret" not in str(caught.value)
