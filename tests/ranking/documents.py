"""The documents for the rows of ``rows.py``: three small sites in several languages, by topic.

The topics share no words, so that a query matches the pages of one topic only, and a page added to a topic does not
affect the others. The rows state which property ranks the pages of a topic. Pages have equal lengths where a shorter
one must not win.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Page = Mapping[str, Any]


def page(id: str, title: str, content: str, **fields: str) -> Page:
    """Create a page; ``fields`` may be ``excerpt`` and ``date``."""
    return {"id": id, "title": title, "content": content, "url": f"/{id}", **fields}


# --- a site whose pages all have an excerpt: the field that contains a word

SUMMARIES = (
    page("beacon-text", "On the rocks", "Ships see the lighthouse at night.", excerpt="Old stones in the sea."),
    page("beacon-excerpt", "A white tower", "It is built to warn the ships.", excerpt="The lighthouse of the bay."),
    page("beacon-title", "The lighthouse", "It is built to warn the ships.", excerpt="A tower on the cliff."),
    page("dial-rest", "Shadow of noon", "A sundial has no wheels at all.", excerpt="One sundial of brass here."),
    page("dial-title", "The sundial", "It has no wheels and no spring.", excerpt="Noon and its shadow here."),
    page("dial-both", "The sundial", "A sundial has no wheels at all.", excerpt="Noon and its shadow here."),
    page("wool-title", "The dye works", "Red and blue come from plants.", excerpt="Colours out of the valley."),
    page("wool-words", "From the sheep", "First wool is washed, then madder.", excerpt="Colours out of the valley."),
    page("market-all", "Night market in the old town", "The night market has lamps and soup, a market by night.",
         excerpt="Night market: what to eat at night."),
    page("market-title", "Night market", "Lamps hang over the street, and soup is sold.", excerpt="What to eat there."),
    page("market-words", "Market of the night watch", "The watch sold soup at the market.", excerpt="What to eat."),
    page("loom-weak", "Notes", "A shutle next to a spindel of ours.", excerpt="Looking around in the mill."),
    page("loom-strong", "Shuttle", "The shuttle flies from side to side.", excerpt="A shuttle made of boxwood."),
    page("anvil-weak", "Diary", "Saw an anvli, a bellosw and a hammre.", excerpt="In the smithy with them all."),
    page("anvil-strong", "Anvil", "The anvil is of iron, the bellows not.", excerpt="An anvil and the bellows."),
    page("tide-title", "Tide table", "High water at noon, low at six again.", excerpt="When to go to the beach."),
    page("tide-all", "Tide table of today", "The tide table for a month.", excerpt="The tide table here."),
    page("wind-title", "Windmills", "Sails on the hill turn the stone.", excerpt="How flour is made of grain."),
    page("wind-excerpt", "The miller", "Sails on the hill turn the stone.", excerpt="Windmills of Holland."),
    page("wind-text", "The weather", "Sails on the hill turn in the wind.", excerpt="How flour is made of grain."),
)  # fmt: skip

# --- how exactly a word is matched

FORMS = (
    page("harbor-typo", "The harpor", "Somebody mistyped this one."),
    page("harbor-longer", "Harborside", "A walk along the water for all."),
    page("harbor-exact", "The old port", "Boats lie in the harbor in winter."),
    page("candle-typo", "The shelf", "Silver and copper next to a cangle from the smith."),
    page("candle-longer", "The shelf", "Silver and copper next to a candlestick from the smith."),
    page("candle-stem", "The shelf", "Silver and copper next to some candles from the smith."),
    page("candle-exact", "The shelf", "Silver and copper next to a candle from the smith."),
    page("carve-stems", "Carving", "Whoever carves a spoon has to keep the knives sharp."),
    page("carve-exact", "The spoon", "It takes an hour to carve a good one by hand."),
    page("broom-two", "The cupboard", "In there a broomstick and some broomcorn wait for the maids."),
    page("broom-one", "The cupboard", "In there stands a broom next to the bucket of the maids."),
    page("stitch-one", "Cloth", "It takes a needle to stitch and a thread."),
    page("stitch-both", "Cloth", "It takes a needle to stitch, and stitches take long."),
    page("upholster-far", "New upholstarey", "Chairs with cotton and linen on them took a week."),
    page("upholster-exact", "New chairs", "Upholstery of cotton and linen took a week."),
    page("ivory-one", "Big animals", "The walrus is one. A walrus swims."),
    page("ivory-two", "Big animals", "The walrus is one, with teeth of ivory."),
    page("amber-one", "Big trees", "The spruce is one. A spruce grows."),
    page("amber-two", "Big trees", "The spruce is one, with drops of ambre."),
    page("amber-known", "A ring", "It is of gold, with a lot of stones and amber around them."),
    page("ebony-meant", "A table", "It is made of ebony."),
    page("teak-typed", "A table", "It is made of teak."),
    page("south-one", "Small animals", "The penguin is one, and it lives in ice."),
    page("south-two", "Small animals", "The penguin is one, and it lives in antarctica."),
    page("bike-text", "Two wheels", "A bike stands in front of the door."),
    page("bicycle-text", "Two wheels", "A bicycle stands in front of the door."),
    page("bike-title", "The bike", "Two wheels stand in front of the door."),
)  # fmt: skip

# --- how many words are matched, and how near each other

WORDS = (
    page("syrup-one", "Maple", "The maple is a tree. A maple turns red in autumn."),
    page("syrup-both", "Breakfast", "Syrup on the table, and a chair made of maple wood."),
    page("oyster-two", "Oyster", "The knife has a guard, and the oyster has none."),
    page("oyster-all", "What to bring", "One glove for the left hand, a knife, and the oyster."),
    page("bridge-text", "Bridge and blown glass", "The glass and the bridge are seen by boat."),
    page("bridge-far", "Bridge and blown glass", "Two things to see on one day by boat."),
    page("bridge-near", "The new glass bridge", "One thing to see on any day by boat."),
    page("pebble-far", "Pebble and gravel path", "It leads to the well."),
    page("pebble-next", "The old pebble path", "It leads to the well."),
    page("pebble-near", "The pebble garden path", "It leads to the well."),
    page("river-far", "By boat", "The ferry leaves at nine, and whoever likes may row a timetable home."),
    page("river-near", "By boat", "Whoever likes may read the ferry timetable at home, and leave at nine."),
    page("paper-title", "Paper", "Hung up with a lantern in it."),
    page("lantern-title", "Lantern", "Made of wire with a paper on it."),
    page("paper-other", "Paper", "Made of rags or wood."),
    page("paper-another", "Paper", "Made of bark and silk."),
    page("lantern-other", "At night", "Whoever walks takes a lantern along."),
    page("lantern-another", "In the dark", "Whoever rows takes a lantern along."),
    page("comet-text", "Stars", "A comet came by in the year of the bell."),
    page("comet-stops", "Stars", "A comet came by. Why did it do so at last?"),
    page("thunder-stops", "Weather",
         "Where can you be all day? Lightning is seen first, and a thunder follows from afar."),
    page("thunder-near", "Weather", "A thunder after lightning is heard for some seconds by whoever counts."),
    page("echo-stops", "Sounds", "Where can you be all day? An echo in the gorge is heard once."),
    page("echo-text", "Sounds", "Of wood in the winter. An echo in the gorge is heard once."),
    page("hedge-near", "Trees", "In the yard grows the alder cedar hedge that is cut by hand, once a year."),
    page("hedge-far", "Trees", "In the yard grows the alder and what is cut by hand, not cedar."),
    page("comet-title", "The comet", "It came by in the year in which the bell was cast."),
)  # fmt: skip

# --- compound words, words with dots, words with digits

SPELLINGS = (
    page("login-apart", "Passwords", "Whoever wants to log in needs a password."),
    page("login-joined", "Login", "A page with a form for your name."),
    page("login-far", "Firewood", "A log burns in the stove and gives heat."),
    page("node-whole", "Servers", "The server is written in node.js by two people."),
    page("node-parts", "Graphs", "Every node of the graph has a js file next to it."),
    page("node-one", "Trees", "A node of the tree has two children and a parent."),
    page("project", "Packaging", "What pip reads stands in pyproject.toml and nowhere else."),
    page("agency", "Agency", "Two agents of the FBI came by."),
    page("embassy", "Embassy", "A visa of the U.S. takes a month."),
    page("health", "Vaccines", "The W.H.O. writes about them."),
    page("who", "Names", "Ask them who was there."),
    page("letters", "Alphabet", "The letter U stands far behind, not next to S."),
    page("tale", "Fairy tales", "Once upon a time there was a king."),
    page("roof", "The roof", "Climb up on the tiles and look around."),
    page("suite", "Suite 1020", "It has a view of the lake."),
    page("bus", "Bus", "Number 10 goes each 20 minutes."),
    page("portrait", "A portrait", "The head is of marble."),
    page("race", "A race", "One runner was ahead of all."),
    page("three-word", "Yards", "The courtyard lies behind the house, with a well."),
    page("three-parts", "Yards", "Of js three hundred pages were written in a day."),
    page("memory-apart", "Card", "A memory card of 256 GB for the camera."),
    page("memory-joined", "Stick", "A memory stick of 256gb for the car."),
    page("version", "Release", "What is new in v2.0.1 and what was mended."),
    page("ledger-name", "Reference", "Call ledger.reconcile when the day is over."),
    page("ledger-words", "Bookkeeping", "A ledger is hard to reconcile when the day is over."),
    page("clerk", "The clerk", "Write to clerk@counting.example about it."),
)  # fmt: skip

# --- dates

NEWS = (
    page("news-undated", "Gazette", "News of the gazette."),
    page("news-2016", "Gazette", "News of the gazette.", date="2016-06-01"),
    page("news-2024", "Gazette", "News of the gazette.", date="2024-06-01"),
    page("news-2022", "Gazette", "News of the gazette.", date="2022-06-01"),
    page("bulletin-new", "Bulletin", "The bulletin has more to tell than this today, but not to them, since nobody "
         "here has had time to read more than half of it.", date="2024-06-01"),
    page("bulletin-old", "Bulletin", "The bulletin has more to tell than this did.", date="2020-06-01"),
    page("bulletin-undated", "Bulletin", "The bulletin has to tell this."),
)  # fmt: skip

# --- other languages

LANGUAGES = (
    page("de-haus", "Das Haus am See", "Ein Haus mit Garten ist nicht teuer, aber es liegt weit weg."),
    page("de-haeuser", "Alte Häuser", "Die Häuser der Stadt sind aus Holz und werden wieder aufgebaut."),
    page("de-strasse", "Die Straße", "Auf der Straße ist es laut, und die Kinder spielen nicht dort."),
    page("fr-chevaux", "Les chevaux", "Les chevaux sont dans le pré avec leur cavalier."),
    page("fr-cheval", "L'école", "On apprend à monter un cheval avec une selle dans cette école."),
    page("es-canciones", "Las canciones", "Las canciones que se cantan en las fiestas de los pueblos."),
    page("es-hablar", "El verbo", "Las formas: hablo hablas habla hablamos hablan hablaba hablado hablando hable "
         "hablen hablaste hablaron. Los verbos son muchos."),
    page("es-hablar-too", "Los verbos", "También: hablo hablas habla hablamos hablan hablaba hablado hablando hable "
         "hablen hablaste hablaron. No todos son así."),
    page("es-hablais", "La gramática", "Una forma que no se usa en América es habláis."),
    page("es-cancion", "El disco", "Una canción del disco es muy larga y está en la radio."),
    page("zh-library", "北京图书馆", "图书馆在北京的中心，每天开放。"),
    page("zh-museum", "上海博物馆", "博物馆里有很多古代的书和图画。"),
    page("zh-curator", "馆长", "他是馆长，喜欢看书和画地图，每天都在那里。"),
    page("zh-street", "王府井", "大街在北京，有大的商店。"),
    page("zh-garden", "公园的塔", "公园在北京，有白色大塔。"),
    page("ja-station", "東京駅", "東京駅から新幹線に乗ることができます。"),
    page("ja-tokyo", "旅の本", "京都へ行く人と東へ行く人の話です。東京都の地図もあります。"),
    page("ja-tower", "京都の塔", "東の山から京都の町が見えます。"),
    page("ko-school", "학교", "학교에서 친구들과 함께 공부합니다."),
    page("ko-road", "길", "집에서 학교까지 버스를 타고 갑니다."),
    page("ko-friend", "친구", "친구들은 공원에서 놀고 있습니다."),
    page("th-market", "ตลาดน้ำ", "ตลาดนี้มีอาหารและผลไม้มากมาย"),
    page("th-food", "อาหารไทย", "ร้านนี้ขายอาหารไทยและขนมหวาน"),
    page("vi-cabbage", "Rau", "Rau bắp cải luộc chấm nước mắm là món ăn dễ làm ở nhà."),
    page("vi-fish", "Cá kho", "Cá kho tộ là món ăn ngon của người miền Nam."),
    page("vi-market", "Chợ nổi", "Chợ bán cá, món ăn ngon."),
    page("vi-eggplant", "Cà tím", "Cà tím nướng mỡ hành là món ăn dễ làm ở nhà."),
    page("vi-song", "Ca khúc", "Bài này được nhiều người yêu thích ở Việt Nam."),
    page("ar-book", "الكتاب القديم", "هذا الكتاب من المكتبة القديمة في المدينة."),
    page("ar-books", "كتب جديدة", "وصل كتاب جديد إلى هذه المكتبة اليوم."),
    page("hi-book", "पुस्तक मेला", "दिल्ली में पुस्तक मेला हर साल होता है।"),
    page("hi-books", "पुस्तकें", "यहाँ पुस्तकें और अख़बार मिलते हैं।"),
    page("ru-city", "Старые города", "Эти города стоят на реке и известны своими церквями."),
)  # fmt: skip

# --- limits on matching

BOUNDS = (
    page("guess-first", "The attic", "An orchid, a walnut and a barrel stand in the attic."),
    page("guess-last", "The jacket", "The jacket has one pocket on the left side only."),
    page("loose-first", "Printing", "Each index of the book was set in html by hand."),
    page("loose-last", "Painting", "A robots exhibition, with a txt of the talks."),
    page("fog", "The weather", "There will be fog over the hills."),
    page("cable", "Cable", "It fits USB 3 C plugs and no others."),
    page("serial", "Serial number", "Read it in groups: k 7 m 7 k 7 m 7 k 7."),
    page("kiosk", "Kiosk", "Magazines with ads for everybody."),
    page("quoted-phrase", "Rules", "No dogs allowed, and no bikes. Cats are welcome."),
    page("quoted-words", "Rules", "Allowed are cats and dogs on a leash. Bikes are welcome."),
    page("moth-phrase", "Insects", "A velvet moth sits in a drawer."),
    page("moth-words", "Photographing antennae", "Photographing a moth with antennae of velvet."),
    page("post-first", "Post office", "Stamps and parcels until six."),
    page("post-second", "Office for post", "Stamps and letters until six."),
    page("post-third", "Letters", "The post takes them to the office."),
    page("sluice-sentences", "B", "Mind the sluice. Gate keeper here."),
    page("sluice-hyphen", "A", "A sluice-gate keeper is paid every month."),
    page("doctor", "Our physician", "The general practitioner sees you at nine."),
    page("doctor-word", "The doctor", "Whoever is ill is seen at nine."),
    page("short", "The frog", "It sits in the pond all day."),
    page("long", "The captain", "A donaudampfschifffahrtsgesellschaftskapitaen steers a ship of the company."),
)  # fmt: skip

LIBRARY = FORMS + WORDS + SPELLINGS + NEWS + BOUNDS

# --- a site with more pages than a search examines

VILLAGES = (
    *(
        page(
            f"village-{number:03}",
            "Village",
            "The harvest festival begins here" + (" next to the house." if number < 12 else " at nine."),
            **({"date": "2024-06-01"} if number == 119 else {}),
        )
        for number in range(120)
    ),
    page("harvest", "Fields", "The harvest is late because of the rain in spring."),
    page("mouse", "Animals", "A mouse lives in the barn."),
    *(page(f"kiln-{number}", "Kilns", " ".join(f"kiln{chr(97 + at % 26) * 2}{at}" for at in range(30)))
      for number in (1, 2)),
    page("snow-1", "Winter", "A snowflake, a snowfleck and a snowflood."),
    page("snow-2", "Ice", "No snowflake, no snowfleck and no snowflood."),
    page("snow-rare", "Spring", "One last snowflurry."),
    page("muehle", "Die alte Mühle", "Die Mühle steht am Bach und ist nicht mehr in Betrieb."),
    page("quiz-1", "A quiz", "Quail, quake, quart, queen, query, quest, quick, quiet, quill."),
    page("quiz-2", "Quiz again", "Quill, quiet, quick, quest, query, queen, quart, quake, quail."),
    page("quota", "Milk", "There is a quota."),
    page("zoo", "A zoo", "Elephants and lions."),
    page("zebra", "Stripes", "Those of a zebra."),
    page("rhymes", "Rhymes", "The words are eight, fight, light, might, night, right, sight and tight."),
    page("rhyme-ninth", "A rhyme", "And there is wight."),
    page("kiln-name", "Reference", "Write oven.kilnmaster before the colon."),
    page("kiln-rare", "Pottery", "The kilnzz31 is a kind that only one potter has."),
)  # fmt: skip

# --- a manual: titles of sections, and titles that begin with the query


def manual(id: str, title: str, content: str, *headings: str) -> Page:
    """Create a page with a section for each heading."""
    sections = [
        {"anchor": str(number), "title": heading, "level": 2, "start": 0} for number, heading in enumerate(headings)
    ]
    return {**page(id, title, content), "sections": sections}


MANUAL = (
    page("hugo-with", "Deploy with hugo", "Build the site first, then copy it over."),
    page("hugo-begins", "Hugo deployments on a rented machine", "Build the site first, then copy it over."),
    page("kiln-begins", "Kiln firings of a cold winter in the old pottery down by the river", "Ash and a long night."),
    {**manual("kiln-all", "Kiln: firing a kiln", "Firing the kiln: a kiln firing. The kiln is fired, firing by firing.",
              "Kiln firing", "Firing a kiln"), "excerpt": "Firing the kiln, kiln firings."},
    page("marbling", "Changing the ink marbling", "Ink marbling colors a cup: ink marbling needs a bath. "
         "For ink marbling, wait a day."),
    *(page(f"marbling-{at}", f"Ink marbling {name}", "Ash and sand are melted on the clay.")
      for at, name in enumerate(("tongs", "aprons", "baskets", "sieves", "strainers"))),
    manual("glaze-section", "Pottery one", "Ash and sand are melted on the clay.", "Bowls and their glaze", "Cups"),
    manual("glaze-text", "Pottery two", "Ash and glaze are melted on the clay.", "Bowls and their sand", "Cups"),
    manual("slip-title", "Pottery slip", "Ash and sand are melted on the clay.", "Bowls and their sand", "Cups"),
    manual("slip-section", "Pottery of old", "Ash and sand are melted on the clay.", "Slip for cups"),
    manual("wheel-section", "Pottery four", "The foot sets it going; hands do the rest of all of it here.",
           "Throwing on the wheel", "Drying"),
    page("wheel-words", "Throwing by hand", "Throwing, the wheel, throwing on a wheel: a wheel is for throwing."),
    manual("tools-section", "Pottery five", "Wire and sponge and needle.", "Trimming tools", "Drying"),
    page("tools-title", "Trimming tools", "Wire and sponge, trimming tools: tools for trimming."),
    {**manual("saggar-all", "Saggar lid", "Lid, saggar, lid: the lid of a saggar, a saggar and its lid. " * 2,
              "Saggar lid", "Lid of a saggar", "The lid"), "excerpt": "Lid saggar, saggar lid."},
    manual("saggar-section", "Ash", "Ash and a long night in the yard down by the river.", "Lid saggar",
           *(f"Part {number}" for number in range(20))),
    manual("kettle-text", "Pottery six", "Ash and a kettle and sand are melted on the trivet.",
           "A kettle of tin and the trivet", "Cups"),
    manual("kettle-far", "Pottery seven", "Ash and sand are melted on the clay, and so is tin.",
           "A kettle of tin and the trivet", "Cups"),
    manual("kettle-near", "Pottery eight", "Ash and sand are melted on the clay, and so is tin.",
           "Of tin and a kettle trivet the", "Cups"),
    page("shelf-oak", "Oak shelf board", "Wood of the yard."),
    *(manual(f"shelf-{number}", f"Shelf board number {number}", "Wood of the yard.", "Where it is from", "Price")
      for number in range(34)),
)  # fmt: skip

# --- a catalog and an API reference: words made of parts

CATALOG = (
    page("phone", "Office", "Call 079 123 45 67."),
    page("quay-number", "Crane", "Order hafenqx58kran."),
    page("subway-joined", "Lines", "Take the U-Bahn to the museum."),
    page("subway-part", "Bahn", "A Bahn that is none of them."),
    page("part-number", "Sensor", "Order KTINS114DRE."),
    page("part-letters", "Cable", "Order the KT ones without an INS from us."),
    page("draw-hide", "Functions", "Call TextDrawHideForPlayer to do so."),
    page("draw-exact", "Older functions", "Call HideForPlayer to do so, as before."),
    page("element-parts", "Scripts", "Call getElementById first."),
    page("rock-parts", "Music", "Rock'n'roll of the fifties."),
    page("record-parts", "Reference", "Call appTableRecord to keep it."),
    page("record-words", "Guide", "A table of ours with a record in it."),
    page("record-typo", "Wires", "A cable of ours, and a recort of them."),
    page("parapet-parts", "Castle", "Call openParapetGate whenever you like."),
    page("parapet-longer", "Walls", "Several parapets whenever you like it."),
    page("lute-none", "Strings", "A mandola: playHarpSlow."),
    page("lute-parts", "Strings", "A mandola: playLuteSlow."),
    page("lute-stem", "Concert", "Two lutes and a mandola of yours are here."),
    page("sackbut-parts", "Winds", "Call openSackbutCase for one of yours here."),
    page("sackbut-word", "Brass", "Open a sackbut for one of yours in here."),
    page("sackbut-others", "Woods", "Open a panpipe and a crumhorn in here."),
    page("limit-near", "Headers", "The server sends XRateLimitLimit with it."),
    page("limit-apart", "Terms", "A limit is set for each of them, whatever the rate is."),
    page("scroll-many", "Scroll of the parchment", "A parchment scroll."),
    page("scroll-parts", "Rolls", "Call openParchmentScroll and go on to read it there."),
)

# --- a German shop: words within compounds

SHOP = (
    page("lane-suspended", "Die Stadt", "Hier sind die Haupt- und Nebengasse, und sie sind nicht weit."),
    page("lane-short", "Der Ort", "Hier sind die Ab- und Nebengasse, und sie sind nicht weit."),
    page("lane-other", "Das Dorf", "Hier sind das Tor und die Nebenhäuser, und sie sind nicht weit."),
    page("voucher-compound", "Geschenkgutscheine", "Hier sind die Geschenkgutscheine für dich und für die Mutter."),
    page("voucher-word", "Der Laden", "Hier gibt es einen Gutschein für dich und auch für die ganze Familie."),
    page("turn-word", "Das Auto", "Hier kann man wenden, und dann ist es nicht mehr weit zu uns."),
    page("turn-prefix", "Die Hilfe", "Das ist zu verwenden, und das ist nicht schwer für dich."),
    page("put-word", "Das Haus", "Man stellt es einfach vor das Haus, und dort ist es gut."),
    page("put-prefix", "Der Hof", "Das ist abgestellt, und dort ist es auch gut für dich."),
    page("bill-word", "Die Kasse", "Hier ist die Rechnung, und sie ist für dich."),
    page("bill-prefix", "Der Monat", "Hier ist die Abrechnung, und sie ist ab Juli für dich."),
    page("round-word", "Der Tisch", "Er ist rund, und er ist auch für den Garten."),
    page("round-letters", "Das Bild", "Es hat einen Hintergrund, und der ist nicht blau."),
    page("clock-word", "Die Zeit", "Die Uhr ist an der Wand, und sie ist nicht alt."),
    page("clock-compound", "Die Straße", "Dort ist die Parkuhr, und sie ist nicht in dem Park."),
    page("kind-word", "Das Modell", "Der Typ ist gut, und die anderen Typen sind es auch."),
    page("kind-compound", "Das Modul", "Es ist der Modultyp, und den gibt es nicht mehr."),
    page("level-word", "Der Berg", "Es ist die Ebene, und sie ist für dich."),
    page("level-letters", "Der Fall", "Unter gegebenen Umständen ist es nicht gegen dich."),
    page("mark-word", "Das Wort", "Ein Zeichen ist für dich, und man kann es lesen."),
    page("mark-compound", "Der Band", "Ein Lesezeichen ist für dich und auch für das Buch."),
    page("half-word", "Der Apfel", "Er ist halb, und er ist auch für dich."),
    page("half-suffix", "Das Tor", "Es ist innerhalb, und die inneren sind auch für dich."),
    page("always-word", "Der Tag", "Es ist immer für dich, und es ist auch gut."),
    page("always-letters", "Die Wahl", "Das Best ist für dich, und du kannst es bestimmen."),
    page("torch-none", "Das Fest", "Im Garten hängt ein Lampion neben der Hecke und dem Zaun."),
    page("torch-compound", "Das Fest", "Im Garten hängt ein Lampion neben der Duftkerze und dem Duft."),
    page("torch-stem", "Das Fest", "Im Garten hängt ein Lampion neben den Kerzen und dem Zaun."),
)  # fmt: skip

# --- a Swedish program

DIALOGS = (
    page("box-definite", "Hjälp", "Den knapp som du ser i rutan är inte den som du vill ha."),
    page("plan-plural", "Bygge", "De planer som vi har och den kostnad som det är för oss."),
)

# --- words in other spellings

SPELLED = (
    page("team", "L'Équipe", "Sport every day."),
    page("team-town", "Équipe municipale", "An équipe of twelve."),
    page("dunes", "Dunes", "Sand by the sea."),
    page("dun", "D'un château", "Stones on the hill."),
    *(page(f"tour-{number}", "Tur", "A tur to the mountains.") for number in range(2)),
    page("door", "Tür", "Made of oak."),
    *(page(f"rum-{number}", "Rum", "A drink in the town.") for number in range(3)),
    page("room", "Rüm", "A ship of the north."),
    page("furniture", "Möbelhaus", "Chairs and tables."),
    page("aero", "Aeroklub", "Gliders and balloons."),
    page("apply", "お申し込み", "お申し込みはこちらです。"),
    page("desk", "受付時間", "ここにあります。"),
)

SHELVES = {
    "spelled": SPELLED,
    "dialogs": DIALOGS,
    "shop": SHOP,
    "catalog": CATALOG,
    "summaries": SUMMARIES, "library": LIBRARY, "villages": VILLAGES, "languages": LANGUAGES, "manual": MANUAL,
}  # fmt: skip
