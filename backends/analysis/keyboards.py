"""Keyboard layouts, for queries typed with the wrong one (``ghbdtn`` instead of ``привет``)."""

from __future__ import annotations

from collections.abc import Iterator

_KEYS = "qwertyuiop[]asdfghjkl;'zxcvbnm,."
_LAYOUTS = (
    "йцукенгшщзхъфывапролджэячсмитьбю",  # Russian
    "йцукенгшщзхїфівапролджєячсмитьбю",  # Ukrainian
    ";ςερτυθιοπ[]ασδφγηξκλ\xad'ζχψωβνμ,.",  # Greek, in which one key types the accent of the next letter
    "/'קראטוןםפ][שדגכעיחלךף,זסבהנמצתץ",  # Hebrew
    "ضصثقفغعهخحجدشسيبلاتنمكطئءؤر\ufefbىةوز",  # Arabic, in which one key types two letters
    "ضصثقفغعهخحجچشسیبلاتنمکگظطزرذدپو.",  # Persian
)
_TO_LAYOUTS = tuple(str.maketrans(_KEYS, layout) for layout in _LAYOUTS)
_FROM_LAYOUTS = tuple(str.maketrans(layout, _KEYS) for layout in _LAYOUTS)


def in_other_layouts(text: str) -> Iterator[str]:
    """Yield a text as its keys type it in other keyboard layouts: ``ghbdtn`` -> ``привет``, ``руддщ`` -> ``hello``."""
    lowered = text.lower().replace("لا", "\ufefb")
    for table in _TO_LAYOUTS if lowered.isascii() else _FROM_LAYOUTS:
        typed = lowered.translate(table).replace("\ufefb", "لا").replace("\xad", "")
        if typed != lowered and (lowered.isascii() or typed.isascii()):
            yield typed
