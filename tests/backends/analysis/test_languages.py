"""Languages are detected, and words are found by their inflected forms."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.analysis.languages import (
    UNKNOWN,
    _ballots,
    detect_language,
    language_votes,
    likely_languages,
    stem,
    stems,
    stop_words,
    terms_with_stem,
)
from backends.analysis.normalization import terms_of
from backends.languages import LANGUAGES
from backends.query import SearchSettings
from tests.backends.contract import page
from tests.backends.embedded.in_memory import index_of


@pytest.mark.parametrize(("text", "language"), [
    ("How do I install the package on my server, and what is it for?", "en"),
    ("Wie viele Punkte gab die Verteidigung ab, und wer hat sie erzielt?", "de"),
    ("Comment est-ce que je peux installer le paquet dans le serveur ?", "fr"),
    ("¿Cuántos puntos cedió la defensa de los Panthers y quién los hizo?", "es"),
    ("Quanti punti ha subito la difesa e chi li ha segnati nella partita?", "it"),
    ("Quantos pontos a defesa sofreu e quem os marcou? Não sabemos ainda.", "pt"),
    ("Hoeveel punten heeft de verdediging toegestaan en wie heeft ze gemaakt?", "nl"),
    ("Hur många poäng släppte försvaret in och vem gjorde dem? Det är inte känt.", "sv"),
    ("Сколько очков пропустила защита и кто их набрал в этом матче?", "ru"),
    ("كم عدد النقاط التي خسرها الدفاع ومن الذي سجلها في هذه المباراة", "ar"),
    ("Πόσους πόντους δέχτηκε η άμυνα και ποιος τους έβαλε;", "el"),
    ("Ile punktów straciła obrona i kto je zdobył w tym meczu? Nie wiadomo.", "pl"),
    ("पैंथर्स की डिफ़ेन्स ने लीग में केवल 308 अंक दिए और छठे स्थान पर रहे", "hi"),
    ("नेपाल दक्षिण एसियामा पर्ने एक देश हो र यसको राजधानी काठमाडौं हो जुन धेरै सुन्दर छ", "ne"),
    ("黑豹队的防守丢了多少分？", "zh"), ("日本の首都は東京です。", "ja"), ("대한민국의 수도는 서울입니다.", "ko"),
    ("เมืองหลวงของประเทศไทย", "th"), ("Hàng phòng ngự đã để thua bao nhiêu điểm?", "vi"),
    ("Cell :: radius ( c, d, l, m, s, t ) : T, E :: j and k of n", "en"), ("L'eau d'Évian n'est pas chère", "fr"),
    ("12345 !!!", UNKNOWN), ("", UNKNOWN),
])  # fmt: skip
def test_language_is_detected_by_its_common_words_or_script(text: str, language: str) -> None:
    assert detect_language(text) == language


MANY = {
    "es": 0.2, "zh": 0.15, "ru": 0.15, "de": 0.1, "en": 0.1, "ro": 0.1, "fr": 0.1, "tr": 0.06, "vi": 0.05, "it": 0.01,
    "no": 0.001,
}  # fmt: skip


@pytest.mark.parametrize(("words", "shares", "likely"), [
    ("wie viele punkte hat die mannschaft", MANY, {"de"}), ("bu takım kaç puan aldı ve neden", MANY, {"tr"}),
    ("сколько очков", MANY, {"ru"}), ("points", MANY, {"es", "de", "en", "ro", "fr", "vi"}), ("分", MANY, {"vi"}),
    ("quanti punti ha la squadra che gioca nella partita", MANY, {"it"}),
    ("driver s license", {"en": 0.5, "cs": 0.5}, {"en", "cs"}),
    ("los angeles", {"en": 0.97, "es": 0.03}, {"en"}), ("los angeles", {"en": 0.5, "es": 0.5}, {"es"}),
    ("han er ikke en af dem", {"en": 0.999, "no": 0.001}, {"en"}), ("hàng phòng ngự", MANY, {"vi"}),
    ("cà phê", {"en": 0.5, "vi": 0.5}, {"en", "vi"}), ("cà phê", {"vi": 1.0}, {"vi"}), ("points", {}, set()),
    ("points", {UNKNOWN: 1.0}, {"en"}), ("points", {UNKNOWN: 0.6, "cs": 0.4}, {"cs", "en"}),
    ("points", {UNKNOWN: 0.4, "cs": 0.6}, {"cs"}), ("очки", {UNKNOWN: 1.0}, set()), ("3.11", {"en": 1.0}, set()),
])  # fmt: skip
def test_query_languages_are_inferred_from_its_words_and_the_site_languages(
    words: str, shares: dict[str, float], likely: set[str]
) -> None:
    assert set(likely_languages(words.split(), shares)) == likely


def test_inflected_forms_are_found_in_a_minority_language_of_a_multilingual_index() -> None:
    texts = {
        "es": "La casa de mi amigo es grande y está en la ciudad", "de": "Das Haus meiner Freunde ist groß und alt",
        "fr": "La maison de mes amis est grande et elle est dans la ville", "it": "La casa dei miei amici è grande",
        "en": "The house of my friends is big and it is in the city", "nl": "Het huis van mijn vrienden is groot",
        "pt": "A casa dos meus amigos não é grande", "pl": "Dom moich przyjaciół jest duży i stary",
        "sv": "Huset är stort och det ligger inte i staden",
    }  # fmt: skip
    case = index_of(
        page("wanted", "x", "Bilarna är inte gamla och de har sålts av en handlare"),
        *(
            page(f"{name}{at}", "x", f"{text} {at}")
            for name, text in texts.items()
            for at in range(10 if name != "sv" else 6)
        ),
    )
    assert case.ids("vad är bilens pris")[0] == "wanted"


@pytest.mark.parametrize(("language", "left", "right"), [
    ("en", "houses", "house"), ("de", "häuser", "haus"), ("es", "aplicación", "aplicaciones"),
    ("fr", "modifié", "modifier"), ("ru", "документы", "документ"), ("pt", "férias", "ferias"),
    ("it", "città", "citta"), ("sv", "bilarna", "bilar"), ("da", "høne", "høner"), ("no", "prøver", "prøve"),
    ("sv", "rutan", "rutor"), ("sv", "menyn", "meny"), ("sv", "värdena", "värde"), ("sv", "fältet", "fält"),
    ("fi", "ikkuna", "ikkunassa"), ("fi", "koodi", "koodia"),
])  # fmt: skip
def test_inflected_forms_share_a_stem_although_the_index_folds_accents(language: str, left: str, right: str) -> None:
    def every(word: str) -> set[str]:
        return {stem(language, word)} | set(stems(language, terms_of(word)[0]))

    assert every(left) & every(right)


@pytest.mark.slow
@pytest.mark.parametrize("language", [*LANGUAGES, UNKNOWN])
def test_terms_sharing_a_stem_are_the_same_in_bulk_as_individually(language: str) -> None:
    terms = ["2024", "node2", "plusplus", *sorted(stop_words(language))]
    for wanted in [set(stems(language, term)) for term in terms] + [set(), {"abc", "node2"}]:
        alone = [term for term in terms if not wanted.isdisjoint(stems(language, term))]
        assert terms_with_stem(language, wanted, terms) == alone


def test_site_language_setting_selects_the_stemmer() -> None:
    case = index_of()
    case.add(page("a", "Roma", "parlato"), page("b", "zzz"))
    assert case.ids("parlare", settings=SearchSettings(language="it")) == ["a"]
    assert case.ids("parlare", settings=SearchSettings(language="en")) == []


@pytest.mark.parametrize(("language", "text", "written"), [
    ("ar", "المستعمرة", "القسم الغربي للمستعمرة"), ("ar", "مستعمرة", "كل المستعمرات هنا"),
    ("ar", "كتب", "قرأت الكتب كلها"), ("ar", "نسبة", "تغيرت بالنسبة للسكان"),
    ("id", "membaca", "buku yang dibaca"), ("id", "baca", "cara membaca buku"),
    ("ar", "كتاب", "كان وكالكتاب"), ("id", "ajar", "tempat belajar"),
    ("nl", "gebruikt", "wij bruiken het"), ("nl", "maken", "hij maakt het"),
])  # fmt: skip
def test_words_are_found_by_their_stem_despite_prefixes(language: str, text: str, written: str) -> None:
    case = index_of(page("right", "x", written), page("other", "x", "zzz"))
    assert case.ids(text, settings=SearchSettings(language=language)) == ["right"]


@pytest.mark.parametrize(("language", "text", "written"), [
    ("fi", "ikkuna painike", "Ikkunassa on painike"), ("fi", "koodi painike", "Koodia ja painike"),
    ("sv", "ruta knapp", "I rutan är en knapp"), ("sv", "menyn knapp", "En meny och en knapp"),
])  # fmt: skip
def test_words_before_the_last_are_found_with_articles_and_in_other_cases(
    language: str, text: str, written: str
) -> None:
    case = index_of(page("right", "x", written))
    assert case.ids(text, settings=SearchSettings(language=language), all_words=True) == ["right"]


words = st.lists(st.sampled_from([word for language in LANGUAGES for word in stop_words(language)] + ["zzz"]))


@given(words)
def test_detected_language_has_the_most_votes(words: list[str]) -> None:
    votes = language_votes(words)
    counted = dict(zip(_ballots().languages, _ballots().count(words), strict=True))
    unit = max(counted.values(), default=0) / max(votes.values(), default=1)
    assert counted == pytest.approx({language: votes.get(language, 0) * unit for language in counted})
    text = " ".join(words)[:600]
    votes = language_votes(re.findall(r"[^\W\d_]+", text.lower()))
    if text.isascii() and votes:
        assert votes[detect_language(text)] == pytest.approx(max(votes.values()))
