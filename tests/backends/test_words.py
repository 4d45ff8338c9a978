"""Languages, word forms, typing errors and the parts of a query."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.base import Highlight, SearchSettings
from backends.embedded.analysis.languages import (
    STEMMERS,
    UNKNOWN,
    likely_languages,
    recognise,
    sharing_stem,
    stem,
    stems,
    stop_words,
)
from backends.embedded.analysis.normalization import ANALYZER, fold, terms_of
from backends.embedded.analysis.stop_words import STOP_WORDS
from backends.embedded.analysis.vietnamese import has_tones, toned, toned_words
from backends.embedded.index.documents import sort_text
from backends.embedded.query.parser import TermKind, parse_query
from backends.embedded.query.typos import distance, edits, errors_allowed
from backends.registry import create_backend
from tests.backends.contract import Case, page


def index_of(*documents: dict[str, str]) -> Case:
    case = Case(create_backend("memory://"), "i")
    case.backend.create_index("i")
    case.add(*documents)
    return case


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
def test_a_language_is_recognised_by_its_little_words_or_its_script(text: str, language: str) -> None:
    assert recognise(text) == language


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
    ("points", {UNKNOWN: 1.0}, set()), ("3.11", {"en": 1.0}, set()),
])  # fmt: skip
def test_a_query_is_in_the_languages_that_its_words_tell_of_those_of_the_site(
    words: str, shares: dict[str, float], likely: set[str]
) -> None:
    assert set(likely_languages(words.split(), shares)) == likely


def test_words_have_their_forms_in_each_of_many_languages() -> None:
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


def test_every_language_with_a_stemmer_has_stop_words() -> None:
    assert set(STEMMERS) == set(STOP_WORDS)
    for language in STEMMERS:
        assert len(stop_words(language)) > 25, language
        assert stem(language, "abc")


@pytest.mark.parametrize(("language", "left", "right"), [
    ("en", "houses", "house"), ("de", "häuser", "haus"), ("es", "aplicación", "aplicaciones"),
    ("fr", "modifié", "modifier"), ("ru", "документы", "документ"), ("pt", "férias", "ferias"),
    ("it", "città", "citta"), ("sv", "bilarna", "bilar"), ("da", "høne", "høner"), ("no", "prøver", "prøve"),
])  # fmt: skip
def test_forms_of_a_word_share_a_stem_though_the_index_has_no_accents(language: str, left: str, right: str) -> None:
    def every(word: str) -> set[str]:
        return {stem(language, word)} | set(stems(language, terms_of(word)[0]))

    assert every(left) & every(right)


@pytest.mark.parametrize("language", [*STEMMERS, "zh", UNKNOWN])
def test_many_terms_are_compared_by_their_stems_as_each_alone(language: str) -> None:
    terms = ["2024", "node2", "plusplus", *sorted(stop_words(language))]
    for wanted in [set(stems(language, term)) for term in terms] + [set(), {"abc", "node2"}]:
        alone = [term for term in terms if not wanted.isdisjoint(stems(language, term))]
        assert sharing_stem(language, wanted, terms) == alone


words = st.text(alphabet="abcdé", max_size=7)


@given(words, words)
def test_the_distance_is_the_least_number_of_errors(left: str, right: str) -> None:
    def plain(a: str, b: str) -> int:
        if not a or not b:
            return len(a) + len(b)
        best = min(plain(a[1:], b) + 1, plain(a, b[1:]) + 1, plain(a[1:], b[1:]) + (a[0] != b[0]))
        if len(a) > 1 and len(b) > 1 and a[0] == b[1] and a[1] == b[0]:
            best = min(best, plain(a[2:], b[2:]) + 1)
        return best

    assert distance(left, right, 2) == min(3, plain(left, right))
    assert distance(left, right, 2) == distance(right, left, 2)


@given(st.text(alphabet="abcxyz", min_size=2, max_size=9))
def test_every_edit_is_one_error_away(word: str) -> None:
    assert all(distance(word, other, 1) == 1 for other in edits(word))


def test_short_words_and_words_with_digits_are_forgiven_nothing() -> None:
    assert [errors_allowed(word) for word in ("abcd", "abcde", "abcdefgh", "abcdefghi", "abcde1", "x" * 99)] == [
        0, 1, 1, 2, 0, 0,
    ]  # fmt: skip


def test_a_query_is_taken_apart() -> None:
    parsed = parse_query('install "node js" -old -"very old" e-mail 3.11.7 日本語 c++')
    assert [(unit.kind, unit.terms) for unit in parsed.query_terms] == [
        (TermKind.WORD, ("install",)), (TermKind.WORD, ("e",)), (TermKind.WORD, ("mail",)),
        (TermKind.COMPOUND, ("3", "11", "7")), (TermKind.BIGRAM, ("日本",)), (TermKind.BIGRAM, ("本語",)),
        (TermKind.WORD, ("cplusplus",)),
    ]  # fmt: skip
    assert [phrase.terms for phrase in parsed.phrases] == [("node", "js")]
    assert [phrase.terms for phrase in parsed.excluded] == [("old",), ("very", "old")]


@given(st.one_of(st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False, allow_infinity=False)),
       st.one_of(st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False, allow_infinity=False)))  # fmt: skip
def test_numbers_sort_by_size_as_text(left: float, right: float) -> None:
    if left < right:
        assert sort_text(left) < sort_text(right)
    assert sort_text(left) < sort_text("")
    assert sort_text(True) > sort_text(False)


def test_the_language_of_a_site_can_be_set() -> None:
    case = index_of()
    case.add(page("a", "Roma", "parlato"), page("b", "zzz"))
    assert case.ids("parlare", settings=SearchSettings(language="it")) == ["a"]
    assert case.ids("parlare", settings=SearchSettings(language="en")) == []


def test_pins_and_recency_do_not_repeat_or_lose_hits_on_later_pages() -> None:
    case = index_of()
    case.add(*(page(f"p{n:03}", "word", date=f"20{n % 25:02}-01-01") for n in range(230)), page("pin", "other"))
    settings = SearchSettings(pinned={"word": ("pin", "p200", "p003")})
    for wish in (SearchSettings(), settings):
        seen: list[str] = []
        for offset in range(0, 250, 35):
            seen += case.ids("word", limit=35, offset=offset, settings=wish)
        assert len(seen) == len(set(seen)) == case.search("word", settings=wish).total
    assert seen[:3] == ["pin", "p200", "p003"]


def test_recency_orders_hits_alike_on_pages_of_any_size() -> None:
    case = index_of()
    # Longer texts weigh less; of those that are nearly as long, a newer one may come first.
    case.add(*(page(f"p{n:03}", "word" + " more" * n, date=f"20{n * 7 % 25:02}-01-01") for n in range(130)))
    all_at_once = case.ids("word", limit=130)
    assert all_at_once != sorted(all_at_once)
    for limit in (1, 3, 20, 60):
        pages = (case.ids("word", limit=limit, offset=offset) for offset in range(0, 130, limit))
        assert [id for one_page in pages for id in one_page] == all_at_once


@pytest.mark.parametrize("word", ["a", "net", "plusplus", "z" * 158, "z" * 159, "z" * 160, "z" * 161])
def test_a_plain_word_folds_to_what_the_analyzer_makes_of_it(word: str) -> None:
    assert fold(word) == "".join(ANALYZER.analyze(word))


@pytest.mark.parametrize(("text", "found"), [
    ("log in", ["split", "joined"]), ("login", ["joined", "split"]),
    ("how to log in here", ["split", "joined"]), ("data base", ["base"]), ("dat abase", ["base"]),
    ("data bas", ["base"]), ("data bas x", []), ("Data BASE tables", ["base"]), ("in to", ["split"]),
    ('"log in"', ["split"]), ("log -in", ["joined"]),
])  # fmt: skip
def test_words_written_together_or_apart_are_found_either_way(text: str, found: list[str]) -> None:
    case = index_of()
    case.add(
        page("split", "log in", content="Here is how to log in on the page."),
        page("joined", "login", content="The login is on the first page."),
        page("base", "database", content="Tables of a database"), page("into", "Page", content="Out of it, into it"),
    )  # fmt: skip
    assert case.ids(text, all_words=True) == found


def test_words_written_together_are_marked() -> None:
    case = index_of()
    case.add(page("joined", "The login page"), page("split", "How to log in"))
    for text in ("log in", "login"):
        marked = {hit.id: (hit.formatted or {})["title"] for hit in case.search(text, highlight=Highlight()).hits}
        assert marked["joined"] == "The <em>login</em> page"
        assert "<em>log" in marked["split"]


@pytest.mark.parametrize(("text", "found"), [
    ("256gb", {"disk": "<em>256 GB</em> disk", "drive": "<em>256GB</em> drive"}),
    ("256 gb", {"disk": "<em>256</em> <em>GB</em> disk", "drive": "<em>256GB</em> drive"}),
    ("ipad2", {"tablet": "<em>iPad 2</em>"}), ("usbc", {"cable": "<em>USB-C</em>"}),
    ("abc1234xyz", {"part": "<em>ABC-1234-XYZ</em>"}), ("python3.11", {"python": "<em>Python 3.11</em>"}),
    ("usb 3.0", {"hub": "<em>USB3.0</em>"}), ("usb 3.", {"hub": "<em>USB3</em>.0"}),
    ("v3.11", {"python": "Python <em>3.11</em>"}), ("2.0.1", {"release": "App <em>v2.0.1</em>"}), ("2.0.2", {}),
    ("256tb", {}), ("gb256", {}),
])  # fmt: skip
def test_numbers_and_letters_are_found_together_or_apart(text: str, found: dict[str, str]) -> None:
    case = index_of(
        page("disk", "256 GB disk", "x"), page("drive", "256GB drive", "x"), page("tablet", "iPad 2", "x"),
        page("cable", "USB-C", "x"), page("part", "ABC-1234-XYZ", "x"), page("python", "Python 3.11", "x"),
        page("hub", "USB3.0", "x"), page("release", "App v2.0.1", "x"),
    )  # fmt: skip
    hits = case.search(text, all_words=True, highlight=Highlight()).hits
    assert {hit.id: (hit.formatted or {})["title"] for hit in hits} == found


def test_a_well_known_number_with_its_unit_is_found_apart_too() -> None:
    case = index_of(*(page(f"{number}", "Drive", "A drive of 256gb") for number in range(20)))
    case.add(page("apart", "Disk", "A disk of 256 GB"))
    assert "apart" in case.ids("256gb", limit=30)


def test_words_written_together_are_found_among_longer_and_more_frequent_ones() -> None:
    case = index_of()
    case.add(page("database", "Page", content="A database"))
    for number, word in enumerate(("databases", "databasename", "databaseserver") * 3):
        case.add(page(f"longer{number}", "Page", content=f"Some {word}"))
    found = case.ids("data base", all_words=True)
    assert found[0] == "database"
    assert len(found) == 10


@pytest.mark.parametrize(("text", "missing"), [
    ("a live request", "alive"), ("version 1 2", "v12"),
    ("log -out in", "login"), ('log "request" in', "login"), ("in put", "input"), ("plan a", "plana"),
])  # fmt: skip
def test_what_only_looks_like_two_parts_of_a_word_is_not_joined(text: str, missing: str) -> None:
    case = index_of()
    words = ("alive", "login", "input", "plana")
    case.add(*(page(word, "Page", content=f"{word}, said the request for the version") for word in words))
    case.add(page("v12", "Page", content="The version 12"), page("v1", "Page", content="The version 1, or 2"))
    assert missing in case.ids(missing if missing != "v12" else "version 12", all_words=True)
    assert missing not in case.ids(text, all_words=True, settings=SearchSettings(language="en"))


def test_a_known_word_is_not_split_after_a_stop_word() -> None:
    case = index_of()
    case.add(page("upon", "Page", content="Once upon the time"), page("up", "Page", content="It is up on the roof"))
    case.add(page("setup", "Page", content="The setup"), page("set", "Page", content="How it is set up"))
    assert case.ids("upon") == ["upon"]
    assert case.ids("setup") == ["setup", "set"]
    assert case.ids("theroof") == ["up"]


@pytest.mark.parametrize(("language", "text", "written"), [
    ("ar", "المستعمرة", "القسم الغربي للمستعمرة"), ("ar", "مستعمرة", "كل المستعمرات هنا"),
    ("ar", "كتب", "قرأت الكتب كلها"), ("ar", "نسبة", "تغيرت بالنسبة للسكان"),
    ("id", "membaca", "buku yang dibaca"), ("id", "baca", "cara membaca buku"),
    ("ar", "كتاب", "كان وكالكتاب"), ("id", "ajar", "tempat belajar"),
    ("nl", "gebruikt", "wij bruiken het"), ("nl", "maken", "hij maakt het"),
])  # fmt: skip
def test_words_are_found_by_their_stem_whatever_they_begin_with(language: str, text: str, written: str) -> None:
    case = index_of(page("right", "x", written), page("other", "x", "zzz"))
    assert case.ids(text, settings=SearchSettings(language=language)) == ["right"]


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
def test_a_word_typed_with_a_tone_is_found_first_with_it(text: str, first: str) -> None:
    case = index_of(*VIETNAMESE)
    assert case.ids(text)[0] == first


def test_a_word_typed_without_tones_is_found_with_any() -> None:
    case = index_of(*VIETNAMESE)
    assert set(case.ids("cam")) == {"forbidden", "orange", "handbook"}
    assert case.ids("hoa binh") == ["peace"]
    assert set(case.ids("cấm")) == set(case.ids("cam"))


def test_tones_are_kept_of_vietnamese_texts_only() -> None:
    assert has_tones("Những điều bị cấm")
    assert has_tones("Nhu\u031b\u0303ng đie\u0302\u0300u bi\u0323")
    german = "Im 13. Jahrhundert besiegte die Dynastie der Trần in drei Kriegen die Mongolen, die ihr Land wollten."
    for text in ("", "plain", german):
        assert not has_tones(text), text
    assert toned("hoà") == toned("hòa") == toned("ho\u0300a") == "hoa_1"
    assert toned_words(f"Cấm, CAM! {'x' * 41}") == "câm_2 cam"


def test_tones_put_no_page_behind_that_has_none() -> None:
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


UNSPACED = (
    page("ko", "x", "열려면 이 암호를 국립도서관 앞에서 입력"),
    page("th", "x", "ที่มาร์ลโบโรเฮาส์ แต่ย้ายไปที่ ซัมเมอร์เซตเฮาส์"),
    page("zh", "x", "可以免费。仅删除数字，仍然保留 HTML 格式"),
    page("ja", "x", "ファイル名ボックスに、名前を入力（必須）"),
)


@pytest.mark.parametrize(("phrase", "found"), [
    ("열려면 이 암호를", "ko"), ("이 암호를", "ko"), ("도서관 앞에서", "ko"), ("앞에서 도서관", ""),
    ("แต่ย้ายไปที่ ซัมเมอร์", "th"), ("仅删除数字，仍然", "zh"), ("免费。仅删除", "zh"), ("仍然保留 html 格式", "zh"),
    ("保留 HTML", "zh"), ("删除，数字", ""), ("ボックスに、名前", "ja"), ("入力（必須", "ja"), ("入力", "ja"),
])  # fmt: skip
def test_a_phrase_goes_on_from_one_run_of_a_script_without_spaces_to_the_next(phrase: str, found: str) -> None:
    case = index_of(*UNSPACED)
    hits = case.search(f'"{phrase}"', highlight=Highlight()).hits
    assert [hit.id for hit in hits] == ([found] if found else [])
    for hit in hits:
        marked = (hit.formatted or {})["content"]
        assert f"<em>{phrase}</em>".lower() in marked.lower()
        assert found not in case.ids(f'x -"{phrase}"')


@pytest.mark.parametrize(("text", "typed", "marked"), [
    ("使用node.js开发", "node.js", "使用<em>node.js</em>开发"), ("版本3.11.7发布", "3.11.7", "版本<em>3.11.7</em>发布"),
    ("使用open source软件", '"open source"', "使用<em>open source</em>软件"),
    ("node.js는 좋다", "node.js", "<em>node.js</em>는 좋다"),
    ("学习C#编程入门", "C#", "学习<em>C#</em>编程入门"), ("学习C++编程", '"C++编程"', "学习<em>C++编程</em>"),
    ("The notepad++ plugin", '"notepad++ plugin"', "The <em>notepad++ plugin</em>"),
    ("ราคา ฿100", "฿100", "ราคา ฿<em>100</em>"), ("កម្ពុជា។សួស្តី", '"កម្ពុជា។សួស្តី"', "<em>កម្ពុជា។សួស្តី</em>"),
    ("ދިވެހި-އިނގިރޭސި", "ދިވެހި-އިނގިރޭސި", "<em>ދިވެހި</em>-<em>އިނގިރޭސި</em>"), ("हिन्दी।भाषा", "भाषा", "हिन्दी।<em>भाषा</em>"),
])  # fmt: skip
def test_words_are_found_and_marked_beside_any_script_and_sign(text: str, typed: str, marked: str) -> None:
    (hit,) = index_of(page("a", "x", text), page("b", "x", "y")).search(typed, highlight=Highlight()).hits
    assert (hit.formatted or {})["content"] == marked


def test_no_word_of_a_long_phrase_is_forgotten() -> None:
    run = "機械学習の基礎と応用に関する国際研究会"
    case = index_of(page("a", "x", f"a {run} zebra"), page("b", "x", f"a {run} giraffe"))
    assert case.ids(f'"a {run} zebra"') == ["a"]
    assert case.ids(f'"a {run} nothing"') == []
    assert case.ids(f'x -"a {run} zebra"') == ["b"]


@pytest.mark.parametrize(("text", "found"), [
    ("电脑", {"run", "word"}), ("计算机", {"run", "word"}), ("个人 电脑", {"run"}), ("plane", {"two", "one"}),
])  # fmt: skip
def test_synonyms_stand_inside_of_runs_too(text: str, found: set[str]) -> None:
    case = index_of(
        page("run", "x", "我的个人计算机很好"), page("word", "电脑", "x"), page("two", "x", "An air craft"),
        page("one", "x", "A plane"),
    )  # fmt: skip
    settings = SearchSettings(synonyms=(("电脑", "计算机"), ("plane", "air craft")))
    assert set(case.ids(text, settings=settings, all_words=True)) == found


def test_a_synonym_is_worth_as_much_beside_a_word_with_a_tone() -> None:
    case = index_of(
        *VIETNAMESE,
        page("one", "Rạp", "Một cái rạp ở trong thành phố"),
        page("both", "Nhà hát", "Vở kịch cũ ở trong thành phố"),
    )
    assert case.ids("rạp cũ", settings=SearchSettings(synonyms=(("rạp", "kịch"),)))[0] == "both"


def test_decomposed_texts_have_their_tones() -> None:
    decomposed = [
        {name: unicodedata.normalize("NFD", value) for name, value in fields.items()} for fields in VIETNAMESE
    ]
    assert index_of(*decomposed).ids("cấm")[0] == "forbidden"


def test_a_tone_is_no_number() -> None:
    assert toned("à") not in toned_words("Cổng A1 A_1").split()


def test_quotes_in_a_sentence_are_only_a_name() -> None:
    case = index_of(
        page("doctor", "Television", "The doctor travels through time and has been played by many actors"),
        page("exact", "Television", "Doctor Who travels alone"),
        page("other", "Gardens", "Roses and tulips"),
    )
    assert case.ids('how often does "Doctor Who" travel through time') == ["exact", "doctor"]
    assert case.ids('how often does "Doctor Who" travel', all_words=True) == []
    assert case.ids('how often does "Doctor Whom" travel through time')[0] == "doctor"
    assert "other" not in case.ids('how often does "Doctor Whom" travel through time -"roses and"')
    assert case.ids('how often does "Doctor Whom" travel', all_words=True) == []
    for strict in ('"Doctor Whom"', 'time "Doctor Whom"', '"Doctor Whom" "travels through time"'):
        assert case.ids(strict) == [], strict


def test_a_phrase_that_a_page_has_is_kept_though_no_other_word_is_there() -> None:
    case = index_of(page("phrase", "TV", "Doctor Who has been on for years"), page("other", "Doctor", "Doctor, doctor"))
    assert case.ids('how expensive tickets "Doctor Who" cost') == ["phrase", "other"]
    for words in ('"Doctor Who" nedir?', '"Doctor Who" -tickets cost'):
        assert case.ids(words) == ["phrase"]
    assert case.ids('"Doctor Who" cost -years') == case.ids('"Doctor Who" cost', all_words=True) == []


@pytest.mark.parametrize("pinned", [{}, {'how often does "doctor who" travel': ("words-070", "phrase-1")}])
@pytest.mark.parametrize("size", [7, 50, 101])
def test_pages_with_and_without_a_quoted_name_are_one_list(size: int, pinned: dict[str, tuple[str, ...]]) -> None:
    case = index_of(
        *(page(f"words-{at:03}", "Doctor travels often", "Who else, how often? The doctor.") for at in range(120)),
        *(page(f"phrase-{at}", "Television", "Doctor Who was on for years") for at in range(3)),
    )
    text, settings = 'how often does "Doctor Who" travel', SearchSettings(pinned=pinned)
    ids = [id for at in range(0, 150, size) for id in case.ids(text, offset=at, limit=size, settings=settings)]
    assert len(ids) == len(set(ids)) == 123
    first = [*pinned.get(text.lower(), ()), "phrase-0", "phrase-1", "phrase-2"]
    assert set(ids[: len(set(first))]) == set(first)
    assert case.search(text, limit=0, settings=settings).total == 123


def test_two_words_of_a_script_without_spaces_are_no_sentence() -> None:
    case = index_of(page("a", "博物馆", "开放的时间"), page("b", "时间", "博物馆开放"))
    assert case.ids('"开放时间" 博物馆') == []
    assert case.ids('请问市中心的博物馆什么时候有"开放时间"呢')[:1] != []


def test_quoted_words_that_count_as_words_are_marked() -> None:
    case = index_of(page("doctor", "Television", "The doctor travels through time"))
    (hit,) = case.search('how often does "Doctor Whom" travel', highlight=Highlight()).hits
    assert "<em>doctor</em> <em>travels</em>" in (hit.formatted or {})["content"]


def test_a_compound_comes_first_as_written_and_then_in_parts() -> None:
    case = index_of(
        page("parts", "Driver", "The driver structure has prime_fd_to_handle and more"),
        page("whole", "Other", "See drm_driver.prime_fd_to_handle for this drm thing"),
        page("both", "Guide", "In drm: the driver, its handle to a prime fd"),
        page("none", "Guide", "Handle with care"),
        page("letters", "s of u", "u and s"),
        page("us", "U.S. law", "x"),
        page("version", "7 of 3.11", "x"),
    )
    assert case.ids("drm_driver.prime_fd_to_handle") == ["whole", "both"]
    assert case.ids("U.S.") == ["us"]
    assert case.ids("3.11.7") == []
    assert case.ids("drm_driver.prime_fd_to_handle", all_words=True) == ["whole"]


def test_the_parts_of_a_compound_are_marked_where_it_stands_in_parts() -> None:
    case = index_of(page("a", "Guide", "The node has js."), page("b", "Guide", "Install node.js here"))
    marked = {hit.id: (hit.formatted or {})["content"] for hit in case.search("node.js", highlight=Highlight()).hits}
    assert marked == {"b": "Install <em>node.js</em> here", "a": "The <em>node</em> has <em>js</em>."}


def test_what_only_has_some_parts_of_a_compound_is_marked() -> None:
    (hit,) = index_of(page("a", "Guide", "The function INV")).search("F.INV-function", highlight=Highlight()).hits
    assert (hit.formatted or {})["content"] == "The <em>function</em> <em>INV</em>"


def test_letters_of_an_abbreviation_are_not_marked_elsewhere() -> None:
    case = index_of(page("a", "Page", "The U.K. has vitamin K and plan U"))
    (hit,) = case.search("U.K. plan", highlight=Highlight()).hits
    assert (hit.formatted or {})["content"] == "The <em>U.K</em>. has vitamin K and <em>plan</em> U"


def test_only_the_first_compounds_of_many_are_found_in_parts_unless_nothing_else_is() -> None:
    case = index_of(page("first", "aa and bb"), page("third", "ee and ff"), page("fourth", "gg_hh"))
    assert case.ids("aa_bb cc_dd ee_ff gg_hh") == ["fourth", "first"]
    assert set(case.ids("aa_bb cc_dd ee_ff")) == {"first"}
    assert case.ids("cc_dd xx_yy ee_ff") == ["third"]
