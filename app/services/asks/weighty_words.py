"""The words of a question that a page must have to answer it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from backends.analysis.languages import stop_words
from backends.analysis.normalization import terms_of

# These languages are split into characters and pairs of characters, so their stop words are no terms.
_FUNCTION_WORDS: Mapping[str, re.Pattern[str]] = {
    "ja": re.compile(r"[\u3040-\u309f何誰教]"),  # Hiragana writes particles and endings.
    "ko": re.compile(r"[은는이가을를에의도요나까]$|언제|어디|무엇|누가|누구|어떻|얼마"),  # Particles end a word.
    "zh": re.compile(r"[的了吗嗎呢吧啊是在有和几幾什么麼怎样樣如何哪谁誰多少请請问問我你这這那里裡可以能要想]"),
}
"""What terms contain that need not match, by the language's ISO 639-1 code: words of grammar and of questions."""


def weighty_words(text: str, language: str) -> list[str]:
    """Return the different words of a text that are not stop words, in order.

    In Chinese, Japanese, and Korean, they are characters and pairs of characters; all of them if the text contains
    words of grammar only.

    Args:
        language: ISO 639-1 code.
    """
    stops = stop_words(language)
    words = list(dict.fromkeys(word for word in terms_of(text) if word not in stops))
    function_words = _FUNCTION_WORDS.get(language)
    if function_words is None:
        return words
    return [word for word in words if not function_words.search(word)] or words
