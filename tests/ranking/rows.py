"""The specification of the ranking: each row states which hits a query returns, in order.

To add a row, write the query, the IDs of its hits in order, and the promise in a sentence::

    Row("harbor", "harbor-exact harbor-longer harbor-typo", "A word as typed comes before a longer one."),

* The pages are in ``documents.py``. Use words that occur on no other page, and run ``pytest tests/ranking``, which
  shows the actual hits.
* ``…`` at the end of the IDs represents other hits in any order; ``total`` is the total number of hits.
* ``shelf`` selects the pages to search, ``settings`` are the site's settings, and the rest are search parameters.

For every new number of the ranking, add a row that fails if the number is removed and a row that fails if it is
tripled; often one row does both. ``test_numbers.py`` requires them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from backends.query import SearchQuery, SearchSettings, SortKey
from tests.ranking.engine import Found


@dataclass(frozen=True)
class Row:
    """One query and its expected hits.

    Attributes:
        query: The query as typed.
        ids: IDs of all hits in order, separated by spaces; with ``…`` at the end, of the first hits only.
        shows: The promise, as a sentence.
        shelf: Key in :data:`tests.ranking.documents.SHELVES`.
        total: Total number of hits, if ``ids`` does not contain all of them.
    """

    query: str
    ids: str
    shows: str
    shelf: str = "library"
    settings: SearchSettings = field(default_factory=SearchSettings)
    sort: tuple[SortKey, ...] = ()
    fields: tuple[str, ...] = ()
    all_words: bool = False
    total: int | None = None

    @property
    def search(self) -> SearchQuery:
        """The search to run."""
        return SearchQuery(
            self.query, limit=20, settings=self.settings, sort=self.sort, fields=self.fields, all_words=self.all_words
        )

    def holds(self, found: Found) -> bool:
        """Whether the hits are as the row specifies."""
        ids = self.ids.split()
        if ids[-1:] == ["…"]:
            ids.pop()
            return found.ids[: len(ids)] == tuple(ids) and len(ids) < found.total == (self.total or found.total)
        return found.ids == tuple(ids) and found.total == len(ids)

    def __str__(self) -> str:
        return f"{self.query[:40]} in {self.shelf}"


FIELDS = (
    Row("lighthouse", "beacon-title beacon-excerpt beacon-text", "The title counts most, then excerpt, then text.",
        shelf="summaries"),
    Row("sundial", "dial-both dial-title dial-rest",
        "The best field of a word counts fully, the others add a part.",
        shelf="summaries"),
    Row("dye wool madder", "wool-words wool-title", "Two words in the text come before one in the title.",
        shelf="summaries"),
    Row("night market", "market-title market-all market-words …",
        "The page whose title is the query comes first.", shelf="summaries"),
    Row("shuttle spindle", "loom-strong loom-weak",
        "One word in title, excerpt and text comes before two mistyped words in the text.", shelf="summaries"),
    Row("anvil bellows hammer", "anvil-strong anvil-weak",
        "Two words in title, excerpt and text come before three mistyped words in the text.", shelf="summaries"),
    Row("tide table", "tide-all tide-title",
        "A page that is about it in title, excerpt and text comes before one that has just the title.",
        shelf="summaries"),
    Row("sails wind", "wind-title wind-text wind-excerpt",
        "Of two words, one as typed comes before a longer one of an excerpt, but not of a title.", shelf="summaries"),
    Row("hill sails wind", "wind-title wind-excerpt wind-text",
        "Of three words, the field counts more than the end that is missing.", shelf="summaries"),
    Row("lighthouse", "beacon-text", "Only the fields that are asked for are searched.",
        shelf="summaries", fields=("content",)),
    Row("lighthouse", "beacon-text beacon-excerpt beacon-title",
        "The site's own weights decide; what a field of weight 0 has is found, last.",
        shelf="summaries", settings=SearchSettings(weights={"title": 0.0, "content": 3.0})),
)  # fmt: skip

FORMS = (
    Row("harbor", "harbor-exact harbor-longer harbor-typo",
        "A word as typed comes before a longer one, that before a mistyped one, even one of a title."),
    Row("harbor", "harbor-longer harbor-exact harbor-typo",
        "A site that weighs titles four times has a longer word in a title before the word in a text.",
        settings=SearchSettings(weights={"title": 4.0})),
    Row("silver copper candle", "candle-exact candle-stem candle-longer candle-typo",
        "The order of forms: as typed, same stem, longer, mistyped."),
    Row("carve", "carve-stems carve-exact", "A word of the same stem in the title comes before the word in the text."),
    Row("cupboard maids broom", "broom-one broom-two",
        "Two longer words count less than the word as typed."),
    Row("stitch", "stitch-both stitch-one", "A second form of the word adds to it."),
    Row("cotton linen upholstery", "upholster-exact upholster-far",
        "A word with two errors, even of a title, comes after the word as typed."),
    Row("walrus scrimshaw ivroy", "ivory-two ivory-one", "A mistyped word counts more than none."),
    Row("spruce scrimshaw amber", "amber-two amber-one amber-known",
        "A word that another page has as typed counts mistyped, too."),
    Row("teak ebnoy", "teak-typed ebony-meant", "A word as typed comes before one that no page has as typed."),
    Row("penguin scrimshaw antartcia", "south-two south-one", "A word with two errors counts more than none."),
    Row("bicycle", "bike-title bicycle-text bike-text quoted-phrase quoted-words",
        "A synonym, also inflected, is nearly as good as the word itself.",
        settings=SearchSettings(synonyms=(("bicycle", "bike"),))),
)  # fmt: skip

WORDS = (
    Row("maple syrup", "syrup-both syrup-one", "All words come before some, even where some are in the title."),
    Row("maple syrup", "syrup-both", "Only pages with all words are found if that is asked for.", all_words=True),
    Row("maple syrup", "syrup-both", "With a sort, pages with some words are not found where one has all.",
        sort=(SortKey("title"),)),
    Row("oyster knife glove", "oyster-all oyster-two",
        "All three words in the text come before two of them, one in the title."),
    Row("glass bridge", "bridge-text bridge-near bridge-far",
        "Neighbors in a title come before the same words apart, if those are not in the text, too."),
    Row("pebble path", "pebble-next pebble-near pebble-far", "In a title one word may stand between neighbors."),
    Row("ferry timetable", "river-near river-far", "Neighbors in a text come before the same words apart."),
    Row("paper lantern", "lantern-title paper-title …", "A word counts more in a field in which it is rare."),
    Row("why comet", "comet-title comet-stops comet-text", "A stop word need not match, and counts little."),
    Row("why the comet", "comet-title comet-stops comet-text",
        "In a query of three words, stop words find nothing by themselves."),
    Row("why did the xylograph", "", "In a sentence, too, even if no page has its other words."),
    Row("where can lightning thunder", "thunder-near thunder-stops",
        "In a sentence, words near each other count more than stop words."),
    Row("where can you echo", "echo-stops echo-text",
        "Of two pages with the words of a sentence, the one with its stop words comes first."),
    Row("the xylograph zymurgy quokka", "", "A single stop word finds nothing."),
    Row("xylograph alder zymurgy cedar", "hedge-far hedge-near",
        "Words with others between them need not be near each other in a query of words of meaning."),
)  # fmt: skip

SPELLINGS = (
    Row("log in", "login-joined login-apart login-far", "Two words are found written together, too."),
    Row("login", "login-joined login-apart", "One word is found as two, too."),
    Row("log -oak in", "login-apart login-far", "Words are not joined across a word that is left out."),
    Row("a head", "portrait", "A stop word is not joined with the word after it."),
    Row("10 20", "bus", "Two numbers are not joined."),
    Row("upon", "tale", "A known word is not cut into a stop word and a rest."),
    Row("azoo", "zoo", "An unknown word may be cut after its first letter.", shelf="villages"),
    Row("node.js", "node-whole node-parts", "A name with a dot is found in parts, last."),
    Row("pyproject.to", "project", "The last part of a name need not be finished.", all_words=True),
    Row("ledger.recnocile", "ledger-name",
        "A typing error in a name with a dot is corrected, and the rest must stand next to it."),
    Row("ledegr_reconcile", "ledger-name", "The same with an underscore, and in its first part."),
    Row("ledger.recnoc", "ledger-name", "The same in a last part that is not finished."),
    Row("ndoe.js", "node-whole", "A part is forgiven an error however short it is.", all_words=True),
    Row("node.sj", "node-whole", "Even one of two letters.", all_words=True),
    Row("u.q", "", "But not a single letter.", all_words=True),
    Row("ledger-recnocile", "ledger-name ledger-words", "With a hyphen, the parts are words that rank by nearness."),
    Row("clerk@countign.example", "", "An address is forgiven no error."),
    Row("U.S.", "embassy", "An abbreviation is not found in parts of one letter."),
    Row("F.B.I.", "agency", "An abbreviation is found without its dots."),
    Row("W.H.O.", "health", "But not where it is a stop word without them."),
    Row("three.js courtyard", "three-word three-parts", "A name in parts counts less than a word."),
    Row("256gb", "memory-joined memory-apart", "Digits and letters are found apart."),
    Row("256 gb", "memory-apart memory-joined", "Digits and letters are found together."),
    Row("2.0.1", "version", "A version is found with a v before it."),
)  # fmt: skip

SPELLED = tuple(
    Row(query, ids, shows, shelf="spelled")
    for query, ids, shows in (
        ("lequipe", "team", "An article without its apostrophe is no typing error."),
        ("dun", "dunes", "A word of two letters after it is too short."),
        ("moebelhaus", "furniture", "A letter spelled out is no typing error."),
        ('"moebelhaus"', "furniture", "Not in quotes, either."),
        ("moebelh", "furniture", "The word may be unfinished."),
        ("tuer", "tour-0 tour-1 door", "One of the first three pages must write it with its accent."),
        ("ruem", "", "If it is written like this on none of them, it is another word."),
        ("aeroklub", "aero", "A word as typed is that word."),
        ("申込", "apply", "Endings of Japanese verbs may be left out."),
        ("受け付け時間", "desk", "They may be written."),
    )
)  # fmt: skip

NEWS = (
    Row("gazette", "news-2024 news-2022 news-2016 news-undated", "Of pages that are alike, newer ones come first."),
    Row("bulletin", "bulletin-undated bulletin-old bulletin-new",
        "A page that is a little better comes before a newer one."),
)  # fmt: skip

BOUNDS = (
    Row("orchad walnat barrle pockat", "guess-first", "Typing errors are corrected in three words of a query."),
    Row("orchad walnat barrle ledger.recnocile", "guess-first", "A name with a dot is one of the three words."),
    Row("node.js index.html robots.txt", "node-whole loose-first node-parts",
        "Two of the names with dots are found in parts."),
    Row(" ".join(["fog", *(f"q{number}" for number in range(48))]), "",
        "Of a query of more than 48 words those that tell least are left out."),
    Row("forg", "short", "Of a word of four letters that no page has, two may be in each other's place."),
    Row("frag", "", "A word of four letters is forgiven no other error."),
    Row("ofg", "", "A word of three letters is forgiven none."),
    Row("hovbor", "", "A word of six letters is forgiven one error."),
    Row("donaudampfschifffahrtsgesellschaftskapitaem", "", "A word of more than forty letters is forgiven none."),
    Row("usb3c", "cable", "A word is cut where letters and digits meet."),
    Row("k7m7k7m7k7", "", "A word is cut into eight parts at most."),
    Row("ad xylograph", "", "A word of two letters stands for no others of its stem."),
    Row("kiln", "kiln-1 kiln-2", "A beginning stands for the thirty most frequent words that have it.",
        shelf="villages"),
    Row("oven.kiln", "kiln-name", "The end of a name with a dot stands for words that follow its beginning.",
        shelf="villages", all_words=True),
    Row("qu", "quiz-1 quiz-2", "A beginning of two letters stands for the ten most frequent words that have it.",
        shelf="villages"),
    Row("z", "zoo", "A single letter stands for words of titles only.", shelf="villages"),
    Row("snow fl", "snow-1 snow-2", "Two words written together stand for the three most frequent that begin so.",
        shelf="villages"),
    Row("sn ow", "", "Two words of four letters in all do not stand for longer ones.", shelf="villages"),
    Row("xight", "rhymes", "A mistyped word stands for eight others at most.", shelf="villages"),
    Row("harvest festival", "…", "If a hundred pages have all words, no others are found.",
        shelf="villages", total=120),
    Row("wo sind die mühlen", "muehle", "The language of one page in a hundred is known by its stop words.",
        shelf="villages", all_words=True),
    Row("village", "village-000 …", "Among the hundred best, newer pages come first, but not from behind them.",
        shelf="villages", total=120),
    Row("house", "…", "A word that ten pages have is no typing error.", shelf="villages", total=12),
)  # fmt: skip

QUERIES = (
    Row('"no bikes"', "quoted-phrase", "Quoted words must follow each other."),
    Row('"bikes no"', "", "The words of a phrase must stand in its order."),
    Row('xylograph "bikes no allowed"', "", "A phrase that no page has finds nothing in a query that is no sentence."),
    Row('"sluice-gate keeper"', "sluice-hyphen sluice-sentences",
        "A hyphen in a phrase prefers pages with it to those with words across the end of a sentence."),
    Row('stamps parcels "xylograph"', "", "Three words are no sentence."),
    Row('"no bikes" stamps', "quoted-phrase", "If no page has the phrase and a word around it, the phrase decides."),
    Row('are the "welcome cats" allowed', "quoted-phrase quoted-words",
        "In a sentence, quoted words that no page has in this order are words like others."),
    Row('photographing "velvet moth" antennae', "moth-phrase moth-words",
        "In a sentence, pages without the quoted words follow those with them, however much else they have."),
    Row('photographing "velvet moth" antennae', "", "Not if pages with all words are asked for.", all_words=True),
    Row('photographing "velvet moth" antennae', "moth-phrase", "Nor with a sort.", sort=(SortKey("title"),)),
    Row('photographing "velvet moth" antennae', "moth-words moth-phrase", "What is pinned comes before both.",
        settings=SearchSettings(pinned={'photographing "velvet moth" antennae': ("moth-words",)})),
    Row("dogs -leash", "quoted-phrase", "A word after a minus must not be there."),
    Row("post office", "post-first post-second post-third", "The page whose title is the query comes first."),
    Row("post office", "post-third post-first post-second", "What the site has pinned comes first, if it is there.",
        settings=SearchSettings(pinned={"post office": ("post-third", "not there")})),
    Row("post office", "post-third post-second post-first", "A sort comes before all ranking.",
        sort=(SortKey("title"),)),
    Row("doctor", "doctor-word", "Nothing is a synonym but what the site says."),
    Row("doctor", "doctor-word doctor", "A phrase can be a synonym of a word.",
        settings=SearchSettings(synonyms=(("doctor", "general practitioner"),))),
    Row("general practitioner", "doctor-word doctor", "A word can be a synonym of a phrase.",
        settings=SearchSettings(synonyms=(("doctor", "general practitioner"),))),
    Row("the comet", "comet-title comet-text comet-stops …", "With no stop words, each word has to match.",
        settings=SearchSettings(stop_words=frozenset())),
    Row("stamps parcels", "post-first post-second", "A stop word of the site's own need not match, but counts.",
        settings=SearchSettings(stop_words=frozenset({"parcels"})), all_words=True),
    Row("why did", "comet-stops", "A query of stop words alone is one of words.", all_words=True),
)  # fmt: skip

LANGUAGES = tuple(
    Row(query, ids, shows, shelf="languages")
    for query, ids, shows in (
        ("haus", "de-haus de-haeuser", "German: a plural has the stem of the word, whatever its vowel."),
        ("häuser", "de-haeuser de-haus", "German: a plural comes before its singular if it was typed."),
        ("strasse", "de-strasse", "German: ss and ß are the same."),
        ("cheval", "fr-cheval fr-chevaux", "French: the text has the word, the title only its plural."),
        ("ecole", "fr-cheval", "French: accents and the article l' may be left out."),
        ("canciones", "es-canciones es-cancion", "Spanish: the same stem with another accent."),
        ("كتاب", "ar-book ar-books", "Arabic: the article is no part of the word."),
        ("الكتاب", "ar-book ar-books", "Arabic: the word as typed comes first."),
        ("पुस्तक", "hi-book hi-books", "Hindi: the word comes before its plural."),
        ("पुस्तकें", "hi-books hi-book", "Hindi: the plural comes first if it was typed."),
        ("東京", "ja-station ja-tokyo", "Japanese: a word is found inside of a longer one."),
        ("京都", "ja-tower ja-tokyo", "Japanese: it is found even across two words, but last."),
        ("학교", "ko-school ko-road", "Korean: particles cling to a word."),
        ("친구", "ko-friend ko-school", "Korean: the title comes first."),
        ("อาหาร", "th-food th-market", "Thai: a word is found inside of a sentence."),
        ("图书馆", "zh-library", "Chinese: a word of three characters is two pairs."),
        ("图书馆长", "zh-curator zh-library", "Chinese: one pair in a title comes before two in title and text."),
        ("圖書館", "zh-library", "Chinese: traditional characters find simplified ones."),
        ("北京塔", "zh-library zh-garden zh-street", "Chinese: pairs find; single characters only add."),
        ("ca", "vi-fish vi-eggplant vi-song vi-market …", "Vietnamese: whoever types no tones finds them all."),
        ("ca tim", "vi-eggplant", "Vietnamese: tones may be left out in several words."),
        ("cá món", "vi-fish vi-market vi-eggplant vi-song …",
         "Vietnamese: a word with the tone typed comes before one with another."),
        ("cá món tuyệt", "vi-fish vi-market vi-eggplant vi-song …",
         "Vietnamese: the typed tone in a text comes before another tone in a title."),
        ("город", "ru-city", "Russian: a beginning is found."),
        ("реки", "", "Stems are looked up in languages of at least four in a hundred pages."),
        ("hablar", "es-hablar-too es-hablar", "Spanish: a word stands for the twelve most frequent of its stem."),
    )
)  # fmt: skip

MANUAL = (
    Row("glaze", "glaze-section glaze-text", "A word in the title of a section comes before one in the text.",
        shelf="manual"),
    Row("slip", "slip-title slip-section", "A word in the title comes before one in the title of a section.",
        shelf="manual"),
    Row("kettle trivet", "kettle-text kettle-near kettle-far",
        "Neighbors in the title of a section come before the same words apart, if those are not in the text, too.",
        shelf="manual"),
    Row("throwing on the wheel", "wheel-section wheel-words",
        "A page with a section that is called like the query comes before one that has its words everywhere.",
        shelf="manual"),
    Row("thrwoing on the wheel", "wheel-section wheel-words", "The same with a mistyped word.", shelf="manual"),
    Row("lid sagagr", "saggar-all saggar-section",
        "A page that is about nothing else comes before one with a section called like a mistyped query.",
        shelf="manual"),
    Row("trimming tools", "tools-title tools-section", "A page that is called like the query comes before that.",
        shelf="manual"),
    Row("hugo deplo", "hugo-begins hugo-with", "A title that begins with the query comes first, while one types.",
        shelf="manual"),
    Row("ink marbling", "marbling …", "Titles that all begin with the query don't come before the page about it.",
        shelf="manual"),
    Row("kiln firi", "kiln-all kiln-begins", "A page that is about nothing else comes before it.", shelf="manual"),
    Row("shelf board", "shelf-oak …", "Of a query with which many titles begin, none is meant.", shelf="manual"),
)  # fmt: skip

CATALOG = tuple(
    Row(query, ids, shows, shelf="catalog")
    for query, ids, shows in (
        ("0791 234567", "phone", "A phone number is found in any groups, even in two."),
        ("qx58", "quay-number", "Letters and digits are found within others."),
        ("x58", "", "At least four of them."),
        ("ubahn", "subway-joined subway-part", "A word written with a hyphen is the same word without it."),
        ("kt-ins114-dre", "part-number …", "A number typed with separators is found without them."),
        ("kt ins114 dre", "part-number part-letters", "So is one typed in groups."),
        ("HideForPlayer", "draw-exact draw-hide", "The word as typed comes before a word with these parts."),
        ("elementbyid", "element-parts", "Any number of parts is found joined."),
        ("rocknroll", "rock-parts", "So are words that apostrophes separate."),
        ("table record", "record-words record-parts", "A word that is a part of another one is not mistyped."),
        ("cable kt-ins114-dre", "part-number part-letters …", "It counts as all of its groups."),
        ("mandola banjo lute", "lute-stem lute-parts lute-none", "A part counts, but less than a stem."),
        ("sackbut panpipe crumhorn", "sackbut-others sackbut-word sackbut-parts", "It counts less than a word."),
        ("parapet", "parapet-longer parapet-parts", "A word of the same stem comes before a part of a word."),
        ("rate limit", "limit-apart limit-near", "Parts of a word count less than words."),
        ("parchment scroll", "scroll-many scroll-parts", "Parts of a word count less than words."),
    )
)  # fmt: skip

SHOP = tuple(
    Row(query, ids, shows, shelf="shop")
    for query, ids, shows in (
        ("gutschein", "voucher-word voucher-compound", "A word comes before a compound that ends with it."),
        ("lampion fackel kerze", "torch-stem torch-compound torch-none", "A compound counts, but less than a stem."),
        ("wenden", "turn-word", "A verb is not a compound of a prefix and another verb."),
        ("stellt", "put-word", "Neither is a participle."),
        ("rechnung", "bill-word", "A compound does not begin with a word of two letters."),
        ("rund", "round-word", "Parts of which no other page has the first need more letters."),
        ("uhr", "clock-word", "A word of three letters ends too many others."),
        ("typ", "kind-word kind-compound", "A noun of three letters ends fewer."),
        ("ebene", "level-word", "A compound does not begin with three letters that are a word only with an ending."),
        ("hauptgasse", "lane-suspended", "A compound is found where its last word stands only once."),
        ("abgasse", "", "Its first part has three letters or more."),
        ("torgasse", "", "It must be written with a hyphen."),
        ("quokkazeichen", "mark-word", "A compound that no page has finds its last word."),
        ("quoll zeichen quokkazeichen", "mark-word mark-compound", "The last word of a compound counts little."),
        ("quozeichen", "", "Not if the rest is no word."),
        ("zeichen", "mark-word mark-compound", "It may begin with four letters that are a word with an ending."),
        ("halb", "half-word", "Some words are the endings of too many others."),
        ("immer", "always-word", "A compound ends with the word as typed, or with another word of the pages."),
    )
)

DIALOGS = (
    Row("ruta knapp", "box-definite", "Swedish: a noun has the stem of the word with its article.", shelf="dialogs"),
    Row("plan kostnad", "plan-plural", "Swedish: what may be an article may also belong to the word.", shelf="dialogs"),
)

ROWS = (
    *FIELDS, *FORMS, *WORDS, *SPELLINGS, *SPELLED, *NEWS, *BOUNDS, *QUERIES, *LANGUAGES, *MANUAL, *CATALOG, *SHOP,
    *DIALOGS,
)  # fmt: skip
