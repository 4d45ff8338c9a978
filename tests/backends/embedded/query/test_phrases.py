"""Phrases in scripts with and without spaces."""

from __future__ import annotations

import pytest

from backends.query import Highlight
from tests.backends.contract import page
from tests.backends.embedded.in_memory import index_of

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
def test_phrase_spans_several_runs_of_a_script_without_spaces(phrase: str, found: str) -> None:
    case = index_of(*UNSPACED)
    hits = case.search(f'"{phrase}"', highlight=Highlight()).hits
    assert [hit.id for hit in hits] == ([found] if found else [])
    for hit in hits:
        marked = (hit.formatted or {})["content"]
        assert f"<em>{phrase}</em>".lower() in marked.lower()
        assert found not in case.ids(f'x -"{phrase}"')


def test_every_word_of_a_long_phrase_must_match() -> None:
    run = "機械学習の基礎と応用に関する国際研究会"
    case = index_of(page("a", "x", f"a {run} zebra"), page("b", "x", f"a {run} giraffe"))
    assert case.ids(f'"a {run} zebra"') == ["a"]
    assert case.ids(f'"a {run} nothing"') == []
    assert case.ids(f'x -"a {run} zebra"') == ["b"]
