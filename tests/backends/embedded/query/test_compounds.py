"""Compounds are found by the word that they end with, after documents that contain the word itself."""

from __future__ import annotations

import pytest

from tests.backends.contract import page
from tests.backends.embedded.in_memory import index_of


@pytest.mark.parametrize(("compound", "word"), [
    ("Hier ist der Geschenkgutschein für dich und deine Mutter.", "gutschein"),
    ("Hier sind die Geschenkgutscheine für dich und deine Mutter.", "Gutschein"),
    ("Hier ist der Geschenkgutschein für dich und deine Mutter.", "gutscheine"),
    ("Das ist der Zeilenumbruch, und er ist am Ende der Zeile.", "Umbruch"),
    ("Das ist das Wörterbuch, und die Wörter sind von A bis Z.", "bücher"),
    ("De bon is niet geldig, maar de cadeaukaart wel; die is voor het cadeau.", "kaarten"),
    ("Vi har presentkort som du kan ge till din mamma, och det är en present.", "kort"),
    ("Her er et gavekort, som du kan give til din mor, og det er en gave.", "kort"),
    ("Vi har et gavekort som dere kan gi til moren deres, og det er en gave.", "kort"),
    ("Se on lahjakortti, ja sinä voit ostaa sen, koska se on lahja.", "kortti"),
    ("Das ist die Telefonrechnung, und sie ist von der Post.", "rechnung"),
    ("Das sind die Telefonrechnungen, und sie sind von der Post.", "rechnung"),
    ("Geschenkgutschein", "gutschein"),
    ("Det är dialogrutan, och den är inte stor.", "ruta"),
    ("Det är snabbmenyn, och den är inte snabb.", "meny"),
    ("Det är ett standardvärde, och det är en standard.", "värdet"),
    ("Det är felkoder, och ett fel har en av koden.", "kod"),
    ("Se on valintaikkunassa, ja se on myös tässä.", "ikkuna"),
    ("Das ist der Dateityp, und die Datei hat keinen der Typen.", "typ"),
])  # fmt: skip
def test_compound_is_found_by_its_last_word(compound: str, word: str) -> None:
    case = index_of(page("compound", compound), page("other", "Der Weg ist das Ziel, und das ist auch gut so."))
    assert case.ids(word) == ["compound"]


def test_document_with_the_word_itself_ranks_above_compounds() -> None:
    case = index_of(
        page("compound", "Geschenkgutscheine", "Wir haben Geschenkgutscheine für dich."),
        page("word", "Der Laden", "Und einen Gutschein gibt es auch von uns, wenn man ihn will."),
    )
    assert case.ids("gutschein") == ["word", "compound"]


@pytest.mark.parametrize(("text", "word"), [
    ("Das Wort ist zu verwenden, wenn es nicht anders geht.", "wenden"),
    ("Die Auswahl ist groß, und die Farben sind es auch.", "wahl"),
    ("Der Abend ist da, und er ist auch lang.", "bend"),
    ("Das ist der Taschenrechner, und er ist in der Tasche.", "rechnung"),
    ("The comfortable chair is in the room, and so is the table.", "able"),
])  # fmt: skip
def test_word_whose_beginning_is_not_a_word_is_not_a_compound(text: str, word: str) -> None:
    assert index_of(page("a", text)).ids(word) == []
