"""Normalizing words for the index: composing Unicode, removing case and accents, splitting unspaced scripts into pairs.

Documents and queries go through the same steps. :func:`analyze` does in Python what tantivy's analyzer cannot do;
:data:`ANALYZER` then splits the text, lower-cases it, and folds Latin letters.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise

import tantivy

from backends.text import beyond_ascii, few_marks, normalized

MAX_TERM_BYTES = 160
"""Words of this many bytes or more are neither indexed nor searched."""

TOKENIZER = "words"

_UNSPACED_BASE = (
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
)
_HANGUL = "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3"
_CLUSTERED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59\u0e81-\u0edf\u1000-\u1049\u1050-\u109d\u1780-\u17d3\u17d7\u17dc\u17dd"
    "\u17e0-\u17e9\uaa60-\uaa76\uaa7a-\uaa7f"
)
_CLUSTER_MARKS = (
    "\u0e30-\u0e3a\u0e45\u0e4d\u0eb0-\u0ebc\u0ecd\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064"
    "\u1067-\u106d\u1071-\u1074\u1082-\u108d\u17b4-\u17c8"
)
_SILENT_MARKS = (
    (0xE47, 0xE4C), (0xE4E, 0xE4E), (0xEBA, 0xEBA), (0xEC8, 0xECC), (0x1037, 0x1037), (0x1039, 0x103A),
    (0x17B4, 0x17B5), (0x17C9, 0x17D3), (0x17DD, 0x17DD),
)  # fmt: skip
"""Tone and silencing marks of the clustered scripts; tantivy would split words at them."""

_INVISIBLE = (
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x180B, 0x180F), (0x200C, 0x200F), (0x202A, 0x202E),
    (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0),
)  # fmt: skip
"""Default-ignorable characters of Unicode's Basic Multilingual Plane that occur inside words."""

_SKIN_TONES = (0x1F3FB, 0x1F3FF)

_EMOJI = ((0x2600, 0x27BF), (0x1F1E6, 0x1F1FF), (0x1F300, 0x1FAFF))
EMOJI = re.compile(f"[{''.join(f'{chr(first)}-{chr(last)}' for first, last in _EMOJI)}]")
_EMOJI_LETTERS = "\U00017000-\U000187f7"
"""Letters as which emoji are indexed, so that tantivy does not skip them: Tangut, which is written like Chinese."""

_LETTER_APOSTROPHES = ((0x2BB, 0x2BF),)
"""Letters that look like apostrophes, and are typed as apostrophes or omitted: Hawaiʻi, Qurʾan, пʼять."""

UNSEGMENTED_RUN = re.compile(f"[{_UNSPACED_BASE}]+|[{_HANGUL}]+|[{_CLUSTERED}]+|[{_EMOJI_LETTERS}]+")
"""A run of one script written without spaces, including Korean, whose particles are attached to words, or of emoji."""

_CLUSTER = re.compile(f".[{_CLUSTER_MARKS}]*", re.DOTALL)
_IS_CLUSTERED = re.compile(f"[{_CLUSTERED}]")
# Each pattern begins with the sign itself, because the engine finds a literal many times faster than a look-behind.
_LETTER_PLUS = re.compile(r"\+\+(?<=\b[A-Za-z]\+\+)")
_WORD_PLUS = re.compile(r"\+\+(?![^\W_])(?<=[^\W_]{2}\+\+)")
_LETTER_SHARP = re.compile(r"#(?!\w)(?<=\b[A-Za-z]#)")
_DOT_NET = re.compile(r"\.(?=net(?![^\W_]))(?<![\w.]\.)", re.IGNORECASE)


def _fold_table() -> dict[int, str | None]:
    table: dict[int, str | None] = {}
    for code in (
        *range(0x300, 0x3100),
        *range(0xA600, 0xAC00),
        *range(0xFB00, 0xFE30),
        *range(0x10A00, 0x11E00),
        *range(0x1E140, 0x1E960),
    ):
        char = chr(code)
        if char.isdecimal():
            table[code] = str(unicodedata.decimal(char))
        elif _IS_CLUSTERED.match(char):
            continue
        elif unicodedata.combining(char):
            table[code] = None
        elif 0x370 <= code < 0x400 or 0x1F00 <= code < 0x2000:
            base = normalized("NFD", char)[0]
            if base != char and base.isalpha():
                table[code] = base
    codes = (code for first, last in _EMOJI for code in range(first, last + 1))
    table |= {code: chr(letter) for letter, code in enumerate(codes, 0x17000)}
    for first, last in (*_SILENT_MARKS, *_INVISIBLE, *_LETTER_APOSTROPHES, _SKIN_TONES):
        table |= dict.fromkeys(range(first, last + 1))
    table |= {
        ord("ς"): "σ", ord("ё"): "е", ord("Ё"): "Е", ord("İ"): "I", ord("ı"): "i", ord("ƒ"): "f", ord("µ"): "μ",
        0x640: None, 0x66B: ".", 0x66C: ",",
        ord("أ"): "ا", ord("إ"): "ا", ord("آ"): "ا", ord("ٱ"): "ا", ord("ى"): "ي", ord("ة"): "ه", ord("ؤ"): "و",
        ord("ئ"): "ي", ord("ی"): "ي", ord("ک"): "ك",
    }  # fmt: skip
    return table


_FOLDS = _fold_table()
_MAX_REPLACED_LETTERS = 64

SILENT = "".join(chr(code) for code, folded in _FOLDS.items() if not folded)
"""Marks and invisible characters that do not distinguish words."""


ZERO_WIDTH_SPACE = "\u200b"
_IGNORED_SPACE = re.compile(f"(?<![{_CLUSTERED}]){ZERO_WIDTH_SPACE}(?![{_CLUSTERED}])")
"""A zero-width space, except in the scripts that write it between words."""

FRACTIONS = "\xbc-\xbe\u2150-\u215e\u2189"
"""Fractions such as ½, as the inside of a character class."""

NUMERO = "\u2116"

_WORD_END = re.compile(rf"(?<=\d)(?=[{FRACTIONS}])|(?<={NUMERO})(?=\w)|(?<=\w)(?={NUMERO})")
"""Word boundary before or after a sign that represents several letters: 1½ is 1 1/2, not 11/2."""

_COMPATIBILITY = re.compile(
    rf"[{FRACTIONS}{NUMERO}\u2160-\u2188\ufb1d-\ufdfb\ufe70-\ufefc\uff61-\uff9f\U0001d400-\U0001d7ff]+"
)
"""Presentation forms (frequent in PDF files), Roman numerals, fractions, the numero sign, half-width kana, and
mathematical letters."""

_TO_COMPOSE = re.compile(
    "[^\0-\xac\xae-\xb4\xb6-\xbb\xbf-\u012f\u0132-\u0191\u0193-\u02ba\u02c0-\u02ff"
    "\u2010-\u2029\u202f-\u205f\u2070-\u20cf\u20f1-\u2115\u2117-\u2125\u2127-\u2129\u212c-\u214f\u218a-\u2328\u232b-\u25ff\u27c0-\u2adb\u2add-\u2cee]"
)
"""All characters except Latin letters and signs that composition never changes. Includes unspaced scripts, emoji."""
_UNSPACED = re.compile(f"[{_UNSPACED_BASE}{_HANGUL}{_CLUSTERED}{_EMOJI_LETTERS}]")

ANALYZER = (
    tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    .filter(tantivy.Filter.remove_long(MAX_TERM_BYTES))
    .filter(tantivy.Filter.lowercase())
    .filter(tantivy.Filter.ascii_fold())
    .filter(tantivy.Filter.lowercase())  # Some letters, such as ǧ and ʀ, are folded to capitals.
    .build()
)


def graphemes(run: str) -> list[str]:
    """Split a run of an unspaced script into its units: characters with their marks."""
    return _CLUSTER.findall(run) if _IS_CLUSTERED.match(run) else list(run)


def _paired(match: re.Match[str]) -> str:
    """``東京都`` -> ``東京 京都 東 京 都``: pairs, which match words, then units, which match single characters."""
    pieces = graphemes(match.group())
    alone = " ".join(pieces)
    if len(pieces) == 1:
        return f" {alone} "
    return f" {' '.join([first + second for first, second in pairwise(pieces)])} {alone} "


def compose(text: str) -> str:
    """Compose a text and remove the marks that do not distinguish words."""
    foreign = beyond_ascii(text)
    return text if _TO_COMPOSE.search(foreign) is None else _composed(text, foreign)


def _composed(text: str, foreign: str) -> str:
    normal = few_marks(text, foreign)
    if _COMPATIBILITY.search(foreign) is not None:
        normal = _WORD_END.sub(" ", normal)
        normal = _COMPATIBILITY.sub(lambda match: normalized("NFKC", match.group()), normal)
    if not unicodedata.is_normalized("NFC", normal):
        normal = normalized("NFC", normal)
    if normal is not text:
        text, foreign = normal, beyond_ascii(normal)
    if ZERO_WIDTH_SPACE in foreign:
        text = _IGNORED_SPACE.sub("", text)
    folded = [char for char in set(foreign) if ord(char) in _FOLDS]
    if folded:
        # str.translate would look up every character, although few need replacing. No replacement is itself folded.
        if len(folded) > _MAX_REPLACED_LETTERS:
            text = text.translate(_FOLDS)
        else:
            for char in folded:
                text = text.replace(char, _FOLDS[ord(char)] or "")
        text = normalized("NFC", text)
    return text


def expand_symbols(text: str) -> str:
    """Spell ``C++``, ``C#``, and ``.NET`` as words that the tokenizer does not split."""
    if "+" in text and "++" in text:
        text = _LETTER_PLUS.sub("plusplus ", text)
        text = _WORD_PLUS.sub(" plusplus ", text)
    if "#" in text:
        text = _LETTER_SHARP.sub("sharp ", text)
    if "." in text:
        text = _DOT_NET.sub(" dot", text)
    return text


def analyze(text: str, foreign: str | None = None) -> str:
    """Return a document's text prepared for :data:`ANALYZER`: composed, with runs of unspaced scripts split into pairs.

    Args:
        foreign: The text's non-ASCII characters, if they were computed already.
    """
    foreign = beyond_ascii(text) if foreign is None else foreign
    if _TO_COMPOSE.search(foreign) is None:
        return expand_symbols(text)
    text = _composed(text, foreign)
    return expand_symbols(text if _UNSPACED.search(beyond_ascii(text)) is None else UNSEGMENTED_RUN.sub(_paired, text))


@lru_cache(maxsize=65536)
def fold(word: str) -> str:
    """Return one word in lower case, without accents and other marks; ``""`` if no part of it is indexed.

    Runs of unspaced scripts are not split into pairs.
    """
    if word.isascii() and word.isalpha() and word.islower() and len(word) < MAX_TERM_BYTES:
        return word
    terms = ANALYZER.analyze(expand_symbols(compose(word)))
    return terms[0] if len(terms) == 1 else " ".join(terms)


def terms_of(text: str) -> list[str]:
    """Return the index terms of a text, in order."""
    return list(ANALYZER.analyze(analyze(text)))
