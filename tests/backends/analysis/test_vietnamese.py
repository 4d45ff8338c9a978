"""Vietnamese words typed with and without tones."""

from __future__ import annotations

import unicodedata

import pytest

from backends.analysis.languages import has_tones, toned, toned_words
from backends.query import SearchSettings
from tests.backends.contract import page
from tests.backends.embedded.in_memory import index_of

VIETNAMESE = (
    page("forbidden", "Những điều bị cấm trong thành phố", "Ở đây người ta cấm hút thuốc, và cấm mang chó vào."),
    page("orange", "Trồng cam", "Vườn cam của chúng tôi ở ngoài thành phố, những cây cam lâu năm."),
    page("handbook", "Cẩm nang", "Một cuốn cẩm nang cho người mới đến, có cầm theo bản đồ."),
    page("peace", "Hoà bình", "Mọi người đều mong muốn hòa bình ở khắp nơi."),
)


@pytest.mark.parametrize(("text", "first"), [
    ("cấm", "forbidden"), ("CẤM", "forbidden"), ("cẩm", "handbook"), ("những cây cam", "orange"), ("hòa bình", "peace"),
    ("hoà bình", "peace"), ("ca\u0302\u0301m", "forbidden"),
])  # fmt: skip
def test_word_typed_with_a_tone_ranks_pages_with_that_tone_first(text: str, first: str) -> None:
    case = index_of(*VIETNAMESE)
    assert case.ids(text)[0] == first


def test_word_typed_without_tones_matches_any_tone() -> None:
    case = index_of(*VIETNAMESE)
    assert set(case.ids("cam")) == {"forbidden", "orange", "handbook"}
    assert case.ids("hoa binh") == ["peace"]
    assert set(case.ids("cấm")) == set(case.ids("cam"))


def test_tones_are_recognized_only_in_vietnamese_text() -> None:
    assert has_tones("Những điều bị cấm")
    assert has_tones("Nhu\u031b\u0303ng đie\u0302\u0300u bi\u0323")
    german = "Im 13. Jahrhundert besiegte die Dynastie der Trần in drei Kriegen die Mongolen, die ihr Land wollten."
    for text in ("", "plain", german):
        assert not has_tones(text), text
    assert toned("hoà") == toned("hòa") == toned("ho\u0300a") == "hoa_1"
    assert toned_words(f"Cấm, CAM! {'x' * 41}") == "câm_2 cam"


def test_better_match_without_tones_ranks_above_a_match_with_tones() -> None:
    french = [page(f"fr{n}", "Une page", f"le texte de la page {n} est pour vous et les autres") for n in range(30)]
    case = index_of(
        *french,
        *VIETNAMESE,
        page("résumé", "Le résumé du rapport", "Un résumé est un texte court. Le résumé est là."),
        page("mention", "Thành phố", "Những người làm việc ở đây gửi résumé của họ đến thành phố."),
        page("short", "Cà phê"),
        page("long", "Nhà hàng", "Mọi người ăn cơm và uống cà phê ở nhà hàng trong thành phố."),
    )
    assert case.ids("résumé") == ["résumé", "mention"]
    assert case.ids("cà phê")[:2] == ["short", "long"]


def test_synonym_counts_as_much_as_a_word_with_a_tone() -> None:
    case = index_of(
        *VIETNAMESE,
        page("one", "Rạp", "Một cái rạp ở trong thành phố"),
        page("both", "Nhà hát", "Vở kịch cũ ở trong thành phố"),
    )
    assert case.ids("rạp cũ", settings=SearchSettings(synonyms=(("rạp", "kịch"),)))[0] == "both"


def test_tones_in_decomposed_text_are_recognized() -> None:
    decomposed = [
        {name: unicodedata.normalize("NFD", value) for name, value in fields.items()} for fields in VIETNAMESE
    ]
    assert index_of(*decomposed).ids("cấm")[0] == "forbidden"


def test_tone_marker_does_not_collide_with_a_number() -> None:
    assert toned("à") not in toned_words("Cổng A1 A_1").split()
