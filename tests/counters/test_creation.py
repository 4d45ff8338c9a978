"""Choosing the store for a URL."""

from __future__ import annotations

import pytest

from app.counters import create_counters


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("memory://", "memory"),
        ("sqlite:///var/lib/counters.db", "sqlite"),
        ("sqlite:////var/lib/counters.db", "sqlite"),
        ("redis://127.0.0.1:6379/3", "redis"),
        ("rediss://user:secret@cache.example:6380", "redis"),
        ("unix:///run/redis.sock", "redis"),
    ],
)
def test_url_scheme_selects_the_store_without_opening_it(url: str, name: str) -> None:
    store = create_counters(url)
    assert store.name == name
    store.close()


@pytest.mark.parametrize("scheme", ["mysql", "memcached", "counters+redis"])
def test_unknown_scheme_is_rejected_without_revealing_the_password(scheme: str) -> None:
    with pytest.raises(ValueError, match=f"Unknown counter store '{scheme.replace('+', '.')}'") as caught:
        create_counters(f"{scheme}://user:secret@host/db")
    assert "secret" not in str(caught.value)
    assert "sqlite://" in str(caught.value)


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite://host/file", "sqlite:///file?mode=ro"])
def test_sqlite_url_must_be_an_absolute_path(url: str) -> None:
    with pytest.raises(ValueError, match="sqlite:///absolute/path"):
        create_counters(url)


def test_text_that_is_not_a_url_is_rejected() -> None:
    with pytest.raises(ValueError, match="Unknown counter store 'redis'"):
        create_counters("redis")
