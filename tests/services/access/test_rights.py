"""Rights of keys: which keys have no more rights than other keys."""

from __future__ import annotations

import pytest

from app.errors import ApiError
from app.services.access.rights import Rights, require_cover, rights_of
from schemas.validation.keys import Scope

ALL = rights_of("private", None, False, 1)
LISTED = rights_of("private", frozenset(Scope), False, 1)
ALL_OF_SITE = rights_of("private", None, True, 1)
ALL_OF_OTHER_SITE = rights_of("private", None, True, 2)
KEYS = rights_of("private", frozenset({Scope.KEYS}), False, 1)
KEYS_AND_SEARCH = rights_of("private", frozenset({Scope.KEYS, Scope.SEARCH}), False, 1)
KEYS_OF_SITE = rights_of("private", frozenset({Scope.KEYS}), True, 1)
NOTHING = rights_of("private", frozenset(), False, 1)
SEARCH_KEY = rights_of("search", None, False, 1)
PUBLIC_KEY = rights_of("public", None, False, 1)
PUBLIC_KEY_OF_OTHER_SITE = rights_of("public", None, False, 2)
EVERY = (
    ALL, LISTED, ALL_OF_SITE, ALL_OF_OTHER_SITE, KEYS, KEYS_AND_SEARCH, KEYS_OF_SITE, NOTHING, SEARCH_KEY, PUBLIC_KEY,
    PUBLIC_KEY_OF_OTHER_SITE,
)  # fmt: skip

COVERED = {
    ALL: set(EVERY),
    LISTED: set(EVERY) - {ALL, ALL_OF_SITE, ALL_OF_OTHER_SITE},
    ALL_OF_SITE: {ALL_OF_SITE, KEYS_OF_SITE, SEARCH_KEY, PUBLIC_KEY},
    ALL_OF_OTHER_SITE: {ALL_OF_OTHER_SITE, PUBLIC_KEY_OF_OTHER_SITE},
    KEYS: {KEYS, KEYS_OF_SITE, NOTHING, PUBLIC_KEY, PUBLIC_KEY_OF_OTHER_SITE},
    KEYS_AND_SEARCH: {
        KEYS_AND_SEARCH, KEYS, KEYS_OF_SITE, NOTHING, SEARCH_KEY, PUBLIC_KEY, PUBLIC_KEY_OF_OTHER_SITE,
    },
    KEYS_OF_SITE: {KEYS_OF_SITE, PUBLIC_KEY},
}  # fmt: skip


@pytest.mark.parametrize("held", COVERED)
@pytest.mark.parametrize("wanted", EVERY)
def test_rights_cover_every_key_without_further_rights(held: Rights, wanted: Rights) -> None:
    assert held.cover(wanted) == (wanted in COVERED[held])


@pytest.mark.parametrize(
    ("held", "wanted", "why"),
    [
        (KEYS, SEARCH_KEY, "the calling key lacks the scope `search`"),
        (KEYS, LISTED, "lacks the scopes `documents`, `search`, `analytics`, `sites`, `account`"),
        (LISTED, ALL, "the calling key does not have all scopes"),
        (KEYS_OF_SITE, KEYS, "the calling key is restricted to its own site"),
        (KEYS_OF_SITE, PUBLIC_KEY_OF_OTHER_SITE, "the calling key is restricted to its own site"),
    ],
)
def test_rejection_message_states_the_missing_rights(held: Rights, wanted: Rights, why: str) -> None:
    with pytest.raises(ApiError, match="A key cannot rotate a key that has more rights than itself") as rejected:
        require_cover(held, wanted, "rotate")

    assert (rejected.value.status, why in rejected.value.message) == (403, True)


def test_signed_in_users_have_every_right() -> None:
    require_cover(None, ALL, "create")
