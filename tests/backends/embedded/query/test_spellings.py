"""Words in other spellings than they were typed: they count as the word itself."""

from __future__ import annotations

import pytest

from backends.base import Matched
from backends.query import Highlight
from tests.backends.contract import page
from tests.backends.embedded.in_memory import index_of

NAMES = ("C#", "F#", "G# major", "A# minor", "C++ templates", "g++ compiler", "Notepad++", "Notepad", "Vitamin C")


def found(titles: tuple[str, ...], text: str) -> list[str]:
    """Titles of the hits that have every word of a query, with highlights as ``<em>``."""
    result = index_of(*(page(str(at), title) for at, title in enumerate(titles))).search(text, highlight=Highlight())
    assert (result.matched, result.corrected_query) == (Matched.ALL if result.hits else Matched.SOME, None)
    return [(hit.formatted or {})["title"] for hit in result.hits]


@pytest.mark.parametrize(("text", "titles"), [
    ("C#", ["<em>C#</em>"]), ("F#", ["<em>F#</em>"]), ("C++", ["<em>C++</em> templates"]),
    ("g++", ["<em>g++</em> compiler"]), ("c++ templates", ["<em>C++</em> <em>templates</em>"]),
    ("notepad++", ["<em>Notepad++</em>", "<em>Notepad</em>"]), ("Q#", []),
])  # fmt: skip
def test_names_with_signs_are_not_typing_errors_of_each_other(text: str, titles: list[str]) -> None:
    assert found(NAMES, text) == titles


def test_names_with_signs_are_found_spelled_out() -> None:
    assert found(("CSharp guide", "FSharp"), "C#") == ["<em>CSharp</em> guide"]
    assert found(("C# guide", "F#"), "csharp") == ["<em>C#</em> guide"]


@pytest.mark.parametrize(("titles", "text", "marked"), [
    (("L'Équipe", "Équipe municipale"), "lequipe", "<em>L&#x27;Équipe</em>"),
    (("L'Équipe", "Équipe municipale"), '"lequipe"', "<em>L&#x27;Équipe</em>"),
    (("L'Oréal", "Oréal"), "loreal", "<em>L&#x27;Oréal</em>"),
    (("L'Express", "Train express régional"), "lexpress", "<em>L&#x27;Express</em>"),
    (("L'Express", "Train express régional"), "lexpr", "<em>L&#x27;Express</em>"),
    (("d'Artagnan", "Artagnan"), "dartagnan", "<em>d&#x27;Artagnan</em>"),
    (("Un'altra volta", "Altra"), "unaltra", "<em>Un&#x27;altra</em> volta"),
    (("Dell’acqua", "Acqua"), "dellacqua", "<em>Dell’acqua</em>"),
    (("L'illa", "Illa"), "lilla", "<em>L&#x27;illa</em>"),
    (("S'Arenal", "Arenal"), "sarenal", "<em>S&#x27;Arenal</em>"),
    (("ג'ירפה", "ירפה"), "גירפה", "<em>ג&#x27;ירפה</em>"),
    (("פיג׳מה", "פיג"), "פיגמה", "<em>פיג׳מה</em>"),
])  # fmt: skip
def test_apostrophe_may_be_omitted(titles: tuple[str, ...], text: str, marked: str) -> None:
    assert found(titles, text) == [marked]


@pytest.mark.parametrize(("title", "text"), [
    ("Tür", "tuer"), ("Öl", "oel"), ("Bär", "baer"), ("Süd", "sued"), ("Müller", "mueller"), ("Grüße", "gruesse"),
    ("Möbelhaus", "moebelhaus"), ("Möbelhaus", "moebelh"), ("Mu\u0308ller", "mueller"), ("München", "MUENCHEN"),
    ("Ålborg", "aalborg"), ("Smørrebrød", "smoerrebroed"), ("Jyväskylä", "jyvaeskylae"), ("Ülikool", "uelikool"),
    ("Tuer", "tür"), ("Mueller", "Müller"), ("Aalborg", "Ålborg"), ("Über", '"ueber"'), ("Aeroklub", "aeroklub"),
])  # fmt: skip
def test_letters_may_be_spelled_out(title: str, text: str) -> None:
    assert found((title, "Something"), text) == [title.replace(title.split()[-1], f"<em>{title.split()[-1]}</em>")]


@pytest.mark.parametrize(("title", "text"), [("Pot", "poet"), ("Valu", "queue"), ("Bar", "baer"), ("Sud", "sued")])
def test_letters_without_accents_are_not_spelled_out(title: str, text: str) -> None:
    assert index_of(page("a", title)).search(text).matched is not Matched.ALL


@pytest.mark.parametrize(("title", "text", "marked"), [
    ("お申し込み", "申込", "お<em>申し込</em>み"), ("お申し込み", "申込み", "お<em>申し込み</em>"),
    ("受け付け時間", "受付", "<em>受け付</em>け時間"), ("受け付け時間", "受付時間", "<em>受け付け時間</em>"),
    ("お問い合わせ", "問合せ", "お<em>問い合わせ</em>"), ("お問い合わせ", "お問合わせ", "<em>お問い合わせ</em>"),
    ("引っ越し手続き", "引越し", "<em>引っ越し</em>手続き"), ("引っ越し手続き", "引越", "<em>引っ越</em>し手続き"),
    ("取り扱い説明書", "取扱説明書", "<em>取り扱い説明書</em>"), ("申込", "申し込み", "<em>申込</em>"),
    ("問合せ", "問い合わせ", "<em>問合せ</em>"), ("受付時間", "受け付け時間", "<em>受付時間</em>"),
])  # fmt: skip
def test_endings_of_japanese_verbs_may_be_omitted(title: str, text: str, marked: str) -> None:
    assert found((title, "東京タワーのお知らせ"), text) == [marked]


@pytest.mark.parametrize(("title", "text", "marked"), [
    ("開放時間", "开放时间", "<em>開放時間</em>"), ("開放時間", '"开放时间"', "<em>開放時間</em>"),
    ("开放时间", "開放時間", "<em>开放时间</em>"), ("我的飞机票", "飛機票", "我的<em>飞机票</em>"),
    ("头发", "頭髮", "<em>头发</em>"), ("發展", "发展", "<em>發展</em>"),
    ("臺北圖書館", "台北图书馆", "<em>臺北圖書館</em>"),
])  # fmt: skip
def test_simplified_and_traditional_chinese_find_each_other(title: str, text: str, marked: str) -> None:
    assert found((title, "博物館"), text) == [marked]


def test_japanese_characters_are_not_simplified() -> None:
    assert found(("机の上にあります", "飛行機に乗ります"), "机") == ["<em>机</em>の上にあります"]


@pytest.mark.parametrize(("title", "text", "marked"), [
    ("سنة ٢٠٢٤", "2024", "سنة <em>٢٠٢٤</em>"), ("سال ۱۴۰۳", "1403", "سال <em>۱۴۰۳</em>"),
    ("سال ۱۴۰۳", "١٤٠٣", "سال <em>۱۴۰۳</em>"), ("वर्ष २०२४", "2024", "वर्ष <em>२०२४</em>"),
    ("มาตรา ๑๑๒", "112", "มาตรา <em>๑๑๒</em>"), ("มาตรา๑๑๒", "112", "มาตรา<em>๑๑๒</em>"),
    ("বছর ২০২৪", "2024", "বছর <em>২০২৪</em>"), ("ឆ្នាំ ២០២៤", "2024", "ឆ្នាំ <em>២០២៤</em>"),
    ("ခုနှစ် ၂၀၂၄", "2024", "ခုနှစ် <em>၂၀၂၄</em>"), ("ປີ ໒໐໒໔", "2024", "ປີ <em>໒໐໒໔</em>"),
    ("Act 2024", "٢٠٢٤", "Act <em>2024</em>"), ("Act 2024", "๒๐๒๔", "Act <em>2024</em>"),
    ("２０２４年", "2024", "<em>２０２４</em>年"), ("١٬٠٠٠ دينار", "1000", "<em>١٬٠٠٠</em> دينار"),
    ("٣٫١٤", "3.14", "<em>٣٫١٤</em>"), ("Act 2024", '"act ٢٠٢٤"', "<em>Act 2024</em>"),
])  # fmt: skip
def test_digits_of_other_scripts_are_the_same_digits(title: str, text: str, marked: str) -> None:
    assert found((title, "1999"), text) == [marked]


@pytest.mark.parametrize(("title", "text", "marked"), [
    ("Party 🎉!", "🎉", "Party <em>🎉</em>!"), ("Good 👍🏽", "👍", "Good <em>👍🏽</em>"),
    ("Good 👍", "👍🏿", "Good <em>👍</em>"), ("👩\u200d💻 code", "👩\u200d💻", "<em>👩\u200d💻</em> code"),
    ("Love ❤\ufe0f", "❤", "Love <em>❤\ufe0f</em>"), ("🇩🇪 Bonn", "🇩🇪", "<em>🇩🇪</em> Bonn"),
    ("☎ call", "☎", "<em>☎</em> call"),
    ("Party🎉time", "🎉", "Party<em>🎉</em>time"), ("Pizza", "pizza 🍕", "<em>Pizza</em>"), ("Party time", "🎉", None),
])  # fmt: skip
def test_emoji_are_found_if_a_query_has_no_words(title: str, text: str, marked: str | None) -> None:
    assert found((title, "Something 🌍"), text) == ([] if marked is None else [marked])


@pytest.mark.parametrize(("title", "text"), [
    ("079 123 45 67", "0791234567"), ("079 123 45 67", "079 1234567"), ("079 123 45 67", "+41 79 123 45 67"),
    ("079 123 45 67", "0041791234567"), ("+41 79 123 45 67", "0791234567"), ("+41 79 123 45 67", "079/123 45 67"),
    ("030 12345678", "+493012345678"), ("030 12345678", "030 123 456 78"), ("+49 (0)30 12345678", "03012345678"),
    ("+493012345678", "030 12345678"), ("(415) 555-2671", "4155552671"), ("(415) 555-2671", "+1 415 555 2671"),
    ("8 (495) 123-45-67", "+74951234567"), ("+7 495 123-45-67", "84951234567"), ("12 34 56 78", "1234 5678"),
])  # fmt: skip
def test_phone_numbers_are_found_in_any_grouping(title: str, text: str) -> None:
    (hit,) = found((title, "Suite 1020"), text)
    assert "<em>" in hit


@pytest.mark.parametrize(("title", "text"), [
    ("12.05.2024", "12.5.2024"), ("12.5.2024", "12.05.2024"), ("2024-05-12", "2024-5-12"), ("2024-5-2", "2024-05-02"),
    ("05/12/2024", "5/12/2024"), ("١٢.٠٥.٢٠٢٤", "12.5.2024"),
])  # fmt: skip
def test_dates_are_found_with_and_without_leading_zeros(title: str, text: str) -> None:
    assert found((f"Until {title}", "12 months and 5 days of 2024"), text)[0] == f"Until <em>{title}</em>"


def test_versions_are_not_dates() -> None:
    assert found(("Version 3.11.7",), "3.11.07") == []
