"""Names of the languages that a site can be set to."""

from __future__ import annotations

from collections.abc import Mapping

LANGUAGE_NAMES: Mapping[str, str] = {
    "ar": "Arabic", "hy": "Armenian", "eu": "Basque", "ca": "Catalan", "zh": "Chinese", "cs": "Czech", "da": "Danish",
    "nl": "Dutch", "en": "English", "eo": "Esperanto", "et": "Estonian", "fi": "Finnish", "fr": "French",
    "de": "German", "el": "Greek", "hi": "Hindi", "hu": "Hungarian", "id": "Indonesian", "ga": "Irish",
    "it": "Italian", "ja": "Japanese", "ko": "Korean", "lt": "Lithuanian", "ne": "Nepali", "no": "Norwegian",
    "fa": "Persian", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sr": "Serbian",
    "es": "Spanish", "sv": "Swedish", "ta": "Tamil", "th": "Thai", "tr": "Turkish", "vi": "Vietnamese",
    "yi": "Yiddish",
}  # fmt: skip
"""ISO 639-1 code to English name, by name."""
