"""Strength of new passwords: no common password, no pattern, and not the member's name or email address.

NIST SP 800-63B asks for such a check instead of rules about digits and symbols. zxcvbn estimates the number of guesses
for an attacker who knows leaked passwords, dictionaries, names, keyboards, dates, and the member.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from app.errors import field_error

MIN_GUESSES = 10**8
"""Estimated guesses that zxcvbn requires for its second-best score, safely unguessable."""
MAX_CHECKED_CHARACTERS = 32
"""Number of a password's first characters that are checked: 32 take up to 0.2 s, and 110 would take 2 s of one core."""


def reject_weak_password(field: str, password: str, *personal: str) -> None:
    """Reject a new password that is easy to guess.

    Args:
        field: Name of the password's field in the request.
        personal: The member's name and email address.

    Raises:
        ApiError: 400 with the reason.
    """
    # Loaded on use: most processes never set a password.
    from zxcvbn_rs_py import zxcvbn

    beginning = password[:MAX_CHECKED_CHARACTERS]
    result = zxcvbn(beginning, list(_personal_words(personal)))
    if result.guesses >= MIN_GUESSES:
        return
    if zxcvbn(beginning).guesses >= MIN_GUESSES:
        reason = "It resembles the name or the email address."
    elif result.feedback is not None and result.feedback.warning is not None:
        reason = str(result.feedback.warning)
    else:
        reason = "It consists of common words or patterns."
    raise field_error(field, "too_weak", f"is too easy to guess. {reason} Add another word or two")


def _personal_words(texts: tuple[str, ...]) -> Iterator[str]:
    """``("Ann O. Lee",) -> "ann o. lee", "ann o lee", "annolee", "ann", "o", "lee"``"""
    for text in texts:
        words = re.findall(r"[^\W_]+", text.lower())
        for form in (text.lower(), " ".join(words), "".join(words), *words):
            yield form[:MAX_CHECKED_CHARACTERS]
