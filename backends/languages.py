"""Facts about the languages that search supports, one record each.

Words are written with their accents; code that compares them must fold them first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Language:
    """Facts about one language.

    Attributes:
        name: English name.
        letters: Letters that distinguish it from all other languages, as the content of a regular expression's
            brackets; ``""`` if only its stop words distinguish it.
        letters_share: Minimum share of ``letters`` among a text's letters.
        stop_words: Grammatical words without much meaning, separated by spaces. They identify the language, and
            documents need not contain them to match a query.
        stemmer: Name of the Snowball algorithm; ``""`` if there is none.
        accents: Letters that fold to the same letter, the plain one first; stems may differ in them.
        prefixes: Prefixes that the stemmer removes. Omitted for languages in which few words have any (Irish, Persian,
            Tamil, Yiddish), and if the prefix changes the letters after it.
        linking_letters: Letters that may join the parts of a compound, separated by spaces, if compounds are written
            as one word (*Arbeit-s-zeit*).
        endings: Endings that nouns have or take when they are inflected, folded and separated by spaces.
        articles: Endings of definite nouns that the stemmer leaves (*rutan*: *ruta*), separated by spaces.
        genitive: Ending of the genitive after a vowel, if the stemmer treats many nouns differently without it.
        elides: Whether words lose their vowel before another vowel (*l'eau*).
        tonal: Whether accents distinguish words; see :mod:`backends.analysis.languages`.
    """

    name: str
    letters: str = ""
    letters_share: float = 0.3
    stop_words: str = ""
    stemmer: str = ""
    accents: str = ""
    prefixes: tuple[str, ...] = ()
    linking_letters: str = ""
    endings: str = ""
    articles: str = ""
    genitive: str = ""
    elides: bool = False
    tonal: bool = False


# fmt: off
LANGUAGES: Mapping[str, Language] = {
    "ja": Language("Japanese", letters="\u3041-\u30ff", letters_share=0.1),
    "zh": Language("Chinese", letters="\u3400-\u9fff"),
    "ko": Language("Korean", letters="\uac00-\ud7a3"),
    "th": Language("Thai", letters="\u0e01-\u0e5b"),
    "en": Language("English", stemmer="english", endings="s es y ies", stop_words="""
        a about after all also am an and any are as at be because been before being between both but by can
        could did do does doing down during each for from further get had has have having he her here hers him
        his how i if in into is it its itself just me more most my no nor not now of off on once only or other
        our out over own same she should so some such than that the their them then there these they this those
        through to too under until up very was we were what when where which while who whom whose why will with
        would you your"""),
    "de": Language("German", stemmer="german", endings="e en n er s",
        linking_letters="s es n en er e ens", accents="aäoöuü", stop_words="""
        aber alle als also am an andere anderen auch auf aus bei beim bin bis bist da dadurch damit dann das
        dass davon dazu dein deine dem den denen der deren des dessen die dies diese diesem diesen dieser dieses
        doch dort du durch ein eine einem einen einer eines er es etwas euch euer für gegen habe haben hat hatte
        hatten hier ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in ins ist ja jede jedem jeden jeder jedes
        kann kein keine können man mehr mein meine mich mir mit muss nach nicht noch nun nur ob oder ohne sehr
        sein seine seinem seinen seiner sich sie siehe sind so solche soll sollte sondern sowie um und uns unser
        unter vom von vor wann war waren warum was weil welche welchem welchen welcher welches wenn wer werde
        werden wie wieder will wir wird wo wohin wurde wurden zu zum zur über"""),
    "fr": Language("French", stemmer="french", endings="s x aux al", accents="eéè", elides=True, stop_words="""
        a afin ai alors au aucun aussi autre aux avait avec avez avoir avons c ce ceci cela celle celui ces cet
        cette ceux chaque chez ci combien comme comment d dans de depuis des donc dont du elle elles en entre es
        est et eu eux fait font furent il ils j je l la laquelle le lequel les leur leurs lors lorsque lui m ma
        mais me mes moi mon même n ne ni nos notre nous on ont ou où par parce pas pendant peut plus pour
        pourquoi qu quand que quel quelle quelles quels qui quoi s sa sans se sera ses si son sont sous sur t ta
        te tes toi ton tous tout toute toutes tu un une vers vos votre vous y à ça était étaient été être"""),
    "es": Language("Spanish", stemmer="spanish", endings="s es", accents="aáeéiíoóuú", stop_words="""
        a al algo alguna algunos ante antes aquel aquella aunque bajo cada como con contra cual cuales cuando
        cuándo cuánta cuántas cuánto cuántos cuál cuáles cómo de del desde donde durante dónde e el ella ellas
        ellos en entre era eran es esa esas ese eso esos esta estaba estado estas este esto estos está están fue
        fueron ha había hace han hasta hay la las le les lo los mas me mi mis mucho muy más ni no nos nosotros o
        os otra otras otro otros para pero poco por porque puede pues que quien quienes quién qué se sea según
        ser si sido sin sobre son su sus sí también tanto te tenía tiene tienen todo todos tu tus u un una unas
        uno unos usted y ya yo él"""),
    "it": Language("Italian", stemmer="italian", endings="a e i o", accents="aàeèéiìoòuù", elides=True, stop_words="""
        a ad agli ai al alla alle allo anche avere aveva c che chi ci come con contro cosa cui da dagli dai dal
        dalla dalle dallo degli dei del della delle dello di dove e ed era erano essere fra fu gli ha hai hanno
        ho i il in io l la le lei lo loro lui ma mi mia mio ne negli nei nel nella nelle nello noi non nostro o
        ogni per perché più può qual quale quali quando quanta quante quanti quanto quella quelle quelli quello
        questa queste questi questo se sei senza si sia sono su sua sue sugli sui sul sulla sulle suo suoi tra
        tu tutti tutto un una uno vi voi è"""),
    "pt": Language("Portuguese", stemmer="portuguese", endings="s es", accents="aáâãeéêiíoóôõuú", stop_words="""
        a ainda algum alguma ao aos apenas aquela aquele aqui as até cada com como contra da das de dela dele
        deles depois do dos e ela elas ele eles em entre era eram essa esse esta estas estava este estes está
        estão eu foi foram há isso isto já lhe mais mas me mesmo meu minha muito na nas nem no nos nossa nosso
        não o onde os ou para pela pelas pelo pelos per pode por porque porquê qual quais quando quanta quantas
        quanto quantos que quem se sem ser seu seus si sido sob sobre sua suas são também te tem ter teve tinha
        todos tu tudo têm um uma umas uns você vocês vos à às é"""),
    "nl": Language("Dutch", stemmer="dutch", endings="en s", linking_letters="s en e er",
        prefixes=("ge",),
        stop_words="""
        aan al alle als altijd andere ben bij daar dan dat de der deze die dit doch doen door dus een eens en er
        ge geen geweest haar had heb hebben heeft hem het hier hij hoe hoeveel hun iemand iets ik in is ja je
        kan kon kunnen maar me meer men met mij mijn moet na naar niet niets nog nu of om omdat onder ons ook op
        over reeds te tegen toch toen tot u uit uw van veel voor waar waarom wanneer want waren was wat we wel
        welke werd wezen wie wij wil worden wordt zal ze zelf zich zij zijn zo zonder zou"""),
    "sv": Language("Swedish", stemmer="swedish", endings="a ar er or en na", articles="an en et n t",
        linking_letters="s e o a u", accents="aåäoö", stop_words="""
        alla allt att av blev bli blir de dem den denna deras dess dessa det detta dig din dina ditt du där då
        efter ej eller en er ett från för genom ha hade han hans har henne hennes hon honom hur i icke inom inte
        jag ju kan kunde man med mellan men mig min mina mitt mot mycket ni nu när någon något några och om oss
        på samma sedan sig sin sina sitt ska skulle som så sådan till under upp ut utan vad var varför varje
        vars vem vi vid vilka vilken vilket vår våra är över"""),
    "da": Language("Danish", stemmer="danish", endings="e en er et ne s",
        linking_letters="s e er", accents="aåoø", stop_words="""
        af alle alt anden at blev blive bliver da de dem den denne der deres det dette dig din disse dog du
        efter eller en end er et for fordi fra før få ham han hans har havde have hende hendes her hos hun hvad
        hvem hver hvilke hvilken hvis hvor hvorfor hvordan hvornår i ikke ind jeg jo kan kunne man mange med
        meget men mig min mit mod ned noget nogle nu når og også om op os over på selv sig sin sine skal skulle
        som sådan thi til ud under var vi vil ville være været"""),
    "no": Language("Norwegian", stemmer="norwegian", endings="e en er et ne",
        linking_letters="s e er", accents="aåoø", stop_words="""
        alle at av bare begge ble blei bli blir da de deg dei dem den denne der dere deres det dette di din
        disse du eller en enn er et etter for fordi fra før ha hadde han hans har henne hennes her hun hva hvem
        hver hvilke hvilken hvis hvor hvordan hvorfor i ikke inn ja jeg kan kom kun kunne man mange med meg
        meget mellom men mer min mitt mot nei noe noen nå når og også om opp oss over på seg selv si sin sine
        sitt sjøl skal skulle slik som så til ut uten var ved vi vil ville vår være vært å"""),
    "fi": Language("Finnish", stemmer="finnish", linking_letters="n en s", accents="aäoö", genitive="n", stop_words="""
        ei eivät en että he heidän hän hänen ja joiden joka jolla jos jossa jota jotka kaikki kanssa keiden
        ketkä kuin kuinka kuka kun luin me mihin mikä miksi milloin minkä minun minä missä mistä mitä mukaan
        mutta myös ne niiden niin nyt näitä nämä ole oli olisi olivat olla on ovat se sekä sen siinä sillä sitä
        sinä tai te tämä tämän vai vaan vaikka voi voivat yli"""),
    "hu": Language("Hungarian", stemmer="hungarian", accents="aáeéiíoóöuúü", stop_words="""
        a abban ahhoz ahogy aki akik akkor amely amelyek ami amíg annak arra az azért azok azon azt azzal be
        csak de e ebben egy egyes egyik el ennek erre ez ezek ezen ezt ezért fel ha hanem hány hogy hogyan hol
        is itt jó ki kell kik kit lehet lesz ma maga meg mellett melyik mely mennyi mert mi mikor milyen minden
        mint miért mit most már más még nagyon ne nem nincs ő ők olyan ott pedig sem sok szerint több után úgy
        vagy van vannak volt voltak"""),
    "ro": Language("Romanian", stemmer="romanian", accents="aăâiîsștț", stop_words="""
        a acea aceasta această aceea acei acel acela acele acest acesta aceste ai al ale am ar are as asta așa
        atunci au avea aș ca care ce cea cei cel cele cine cu cum câte cât câți când că dacă dar de decât deci
        din dintre doar după e ea ei el ele era este eu fi fie fiind fost foarte fără iar în într-un încă îi îl
        la le lor lui mai mea meu mult ne nici noi nostru nu numai o ori pe pentru peste poate prin sa sau se
        spre sub sunt său să tot toate toți tu un una unde unei unor unui va voi vor și"""),
    "pl": Language("Polish", stemmer="polish", accents="aąeęlłoósśzżź", stop_words="""
        a aby ale ani az bardzo bez bo by być był była było były ci co czy dla do gdy gdyż gdzie go i ich ile im
        innych iż ja jak jaka jaki jakie jako jednak jego jej jest jeszcze jeśli już kiedy kto która które
        którego której który których którym którzy ku lub ma mi mnie może można na nad nam nas nie nich nim niż
        o od on ona one oni oraz po pod ponieważ przed przez przy są się sobie swoje także tak tam te tego tej
        ten to tu tych tylko tym u w we wszystko z za ze że"""),
    "cs": Language("Czech", stemmer="czech", accents="aáeéěiíouůúsšcčrřzžyý", stop_words="""
        a aby aj ale ani asi az bez bude budou by byl byla byli bylo být co což další do ho i já jak jaké jako
        je jeho jejich jen ještě jenž již jsem jsi jsme jsou k kam kde kdo kdy když ke která které kterou který
        kteří kolik ma má mezi mi mít my na nad nám nebo není než nic o od on ona oni po pod podle pokud pro
        proč proto před přes při s se si sice tak také takže tato té ten tento tím této to tom toto tu tuto ty u
        už v ve více však všechny vy z za zda ze že"""),
    "tr": Language("Turkish", stemmer="turkish", accents="gğiıosşuüoöcç", stop_words="""
        acaba ama ancak bana bazı belki ben beni benim bir biri biz bizim bu buna bunda bundan bunu bunun da
        daha de değil diye dolayı eğer en gibi hangi hem hep hepsi her hiç için ile ise kaç kadar kez ki kim
        kime mi mu mü mı nasıl ne neden nerede nereye niçin niye o olan olarak oldu olduğu olur ona ondan onlar
        onu onun sanki sen senin siz sizin sonra şey şu tarafından tüm var ve veya ya yani yok çok çünkü üzere"""),
    "id": Language("Indonesian", stemmer="indonesian",
        prefixes=("be", "bel", "ber", "di", "diper", "ke", "keber", "me", "mem", "memper", "men", "meng", "pe",
            "pel", "pem", "pen", "peng", "per", "ter"),
        stop_words="""
        ada adalah agar akan aku anda antara apa apakah atas atau bagaimana bagi bahwa banyak belum berapa bila
        bisa bukan dalam dan dapat dari dengan di dia harus ia ingin ini itu jadi jika juga kami kapan karena ke
        kepada ketika kita lagi lain lebih maka mana masih mengapa mereka oleh pada para saat saja sama sampai
        sangat saya sebagai sebuah secara sedang sehingga sejak semua seperti serta setelah siapa suatu sudah
        tanpa telah tentang terhadap tersebut tetapi tidak untuk yaitu yang"""),
    "ca": Language("Catalan", stemmer="catalan", accents="aàeèéiíoòóuú", elides=True, stop_words="""
        a al als altre amb això aquest aquesta aquestes aquests cada com contra d de del dels des després e el
        ella ells els en entre era eren es esta està estan et fins ha han hi i jo l la les li lo meu molt més n
        ni no nosaltres o on per perquè però pot qual quals quan quant quants que qui quin quina què s se sense
        ser seu seva si sobre són també te tenir tot tots tu un una uns us va vosaltres és"""),
    "eu": Language("Basque", stemmer="basque", stop_words="""
        al arte baina bat batean batek baten bere berak bezala da dago dira direla diren ditu ditugu dituzte du
        dugu dut dute edo egin egiten ere esan eta ez gabe gara gu hau hauek hori horiek hura izan izango nola
        non nor noiz oso zein zen zer zergatik zenbat zirela ziren zituen zu zuen"""),
    "et": Language("Estonian", stemmer="estonian", accents="aäoõöuü", stop_words="""
        aga ei enam end et ega ja jah juba kas keegi kelle kes kui kuid kuidas kus kuna ka kõik ma me meie mida
        millal mille millest mis miks mina mitu nad need nende ning nüüd oli olid olla oma on ole olnud pole sa
        see seda selle selles siis siin sina ta tema te teie tuleb või vaid veel väga üks üle"""),
    "ga": Language("Irish", stemmer="irish", accents="aáeéiíoóuú", stop_words="""
        a ach ag agus an ar arna as atá ba bhí cá cad cathain cé cén chuig conas dá dar de do faoi fear go gur i
        iad idir in is é í le má mar muid na nach ní níor nó ó os roimh sa san sé seo sí siad sin sna tá tar
        thar trí um"""),
    "lt": Language("Lithuanian", stemmer="lithuanian", accents="aąeęėiįuųūsšzž", stop_words="""
        ar arba apie bei bet būti buvo būtų dar dėl į iki ir iš jau jei jie jis jo jog jos ji ją jų juo kad kada
        kai kaip kaipo kas kiek kiekvienas kodėl koks kol kur kuri kurie kuris kurių man mano mes ne nei nes
        nors nuo o pagal per po prie prieš savo su tad tai taip tarp tas tik to tu už visi yra čia ši šie šis
        šio"""),
    "eo": Language("Esperanto", stemmer="esperanto", stop_words="""
        al ankaŭ antaŭ apud aŭ ĉar ĉe ĉi ĉiu ĉiuj da de do dum ekde el en estas estis esti estos ĝi ĝis ĝia
        havas ili ilia inter ion iu jam je kaj ke kia kial kie kiel kio kiom kiu kiuj kun kvankam la laŭ li lia
        mi mia ne nek ni nia nur ol oni per plej pli por post povas pri pro se sed sen ses si sia sub super sur
        ŝi ŝia tamen tiu tiuj tio tra tre vi via"""),
    "el": Language("Greek", letters="\u0370-\u03ff\u1f00-\u1fff", stemmer="greek", accents="αάεέηήιίοόυύωώ",
        stop_words="""
        αλλά αν ανά από αυτά αυτές αυτή αυτό αυτοί αυτός αυτού αυτών για γιατί δε δεν εάν εγώ είναι είμαι εκείνη
        εκείνο εκείνος εμείς ένα ένας εσείς εσύ έχει έχουν ή η ήταν θα και κάθε κάτι κατά κι μα μας με μετά
        μέχρι μη μην μια μου μπορεί να ο οι όπου όπως όταν ότι όχι παρά πιο ποια ποιες ποιο ποιοι ποιος πολύ
        πόσα πόσο πότε που πού πριν προς πως πώς σαν σας σε στα στη στην στις στο στον στους τα τη την της τι
        τις το τον του τους των χωρίς ως"""),
    "ru": Language("Russian", stemmer="russian", stop_words="""
        а без более бы был была были было быть в вам вас весь во вот все всего всех вы где да даже для до его ее
        если есть еще ещё же за здесь и из или им их к как какая какие какой какую ко когда кого кто куда ли
        лишь между меня мне много может можно мой мы на над надо наш не него нее ней нет ни них но ну о об
        однако он она они оно от очень по под после при про раз с сам свою себя сейчас со так также такой там
        тебя тем теперь то того тоже той только том тот ту ты у уже хотя чего чей чем через что чтобы чьи эта
        эти это этого этой этом этот я сколько почему"""),
    "sr": Language("Serbian", stemmer="serbian", stop_words="""
        а али ако би бити био била били без већ ви да до због за из или их и је један једна јер када како као ка
        ко која које који којих колико кроз ли ме међу ми може на над након не него нема ни није но о од око он
        она они оно ово овај ова по под пре према при са сам само се своје све смо сте су та тако такође те то
        тог тој у уз где шта што ће"""),
    "ar": Language("Arabic", stemmer="arabic", accents="هةيى",
        prefixes=("ال", "و", "وال", "ب", "بال", "وب", "وبال", "ل", "لل", "ول", "ولل", "ف", "فال", "ك", "كال",
            "وكال"),
        stop_words="""
        أكثر أم أما أن أنا أنت أنه أو أي أين إذا إلا إلى إن إنه ب بعد بعض بل به بها بين تحت تكون تلك ثم حتى حول
        حيث خلال دون ذلك سوف ضد على عليه عليها عن عند عندما غير ف فإن في فيه فيها قبل قد كان كانت كل كم كما كيف
        ل لا لدى لقد لكن لم لماذا لن له لها ليس ما ماذا متى مثل مع من منذ منه منها نحن نحو هذا هذه هل هم هما هنا
        هناك هو هي و وقد ولا ولم وما ومن وهو وهي يكون يمكن التي الذي الذين"""),
    "fa": Language("Persian", stemmer="persian", stop_words="""
        آن آنها آیا از است اگر اما این با باید بر برای بود بودند بین به تا چرا چه چند چون خود خواهد در دارد
        دارند را رو شد شده شود کجا کدام که کرد کرده کند کنند کی ما من می نیز نیست هر هم همه هیچ و یا یک های"""),
    "hi": Language("Hindi", stemmer="hindi", stop_words="""
        अपना अपनी अपने अब आदि आप इन इस इसका इसकी इसके इसमें उन उनका उनकी उनके उस उसका उसकी उसके एक और कब कर करना
        करने कहाँ का कितना कितने कि किया किस किसी की कुछ के कैसे को कौन क्या क्यों गया गई गए जब जहाँ जा जिस जैसे
        जो तक तथा तब तो था थी थे द्वारा दिया दो नहीं ने पर फिर बहुत बाद भी में मैं यदि यह यहाँ या ये रहा रही रहे
        लिए लेकिन वह वहाँ वाले वे सकते सभी साथ से हम ही हुआ हुई हुए है हैं हो होता होती होते होने"""),
    "ne": Language("Nepali", stemmer="nepali", stop_words="""
        अनि अब आफ्नो आदि उनी उनले एक एउटा ऊ का कि किन कसरी कसले कहाँ कति कुन कुनै के को गरे गरेको गर्न गर्ने छ
        छन् छु जब जस्तो जुन तर तथा ती तिनी त्यो थिए थियो थप न नै पनि पछि बाट भए भएको भने भन्ने भन्दा म मा मात्र
        यस यसको यो र रहेको लागि ले लाई वा संग सबै सो हरु हो हुन हुने"""),
    "hy": Language("Armenian", letters="\u0531-\u0587", stemmer="armenian", stop_words="""
        այդ այլ այն այս դու դուք եմ են ենք ես եք է էի էին էինք էիր էիք էր ըստ թ ի ին իսկ իր կամ համար հետ հետո
        մեջ մենք մի ն նա նաև նրա նրանք որ որը որոնք որպես ու ում պիտի վրա և երբ ինչ ինչու ինչպես որտեղ ով քանի"""),
    "ta": Language("Tamil", letters="\u0b80-\u0bff", stemmer="tamil", stop_words="""
        அது அந்த அவர் அவர்கள் அவள் அவன் அல்லது ஆகும் ஆனால் இது இந்த இல்லை இருந்து இருந்த இருக்கும் உள்ள உள்ளது
        எங்கு எந்த எப்படி எப்போது எல்லாம் என் என்ற என்று என்ன எத்தனை ஏன் ஒரு ஒன்று கொண்டு சில தான் நான் நாம் நீ
        பல பற்றி பின் போது போல மற்றும் மிக முதல் மேலும் யார் வரை வேண்டும்"""),
    "yi": Language("Yiddish", stemmer="yiddish", stop_words="""
        און אויב אויף אויס אין אוןן אז איבער איז איר אלע אבער בײ ביי ביז דא דאס דאָס דאך די דער דעם דו ווי וואס
        וואָס ווען ווער ווו וועט זײ זיי זיין זיך זי נאך ניט נישט נאר פאר פון פֿון צו מיט מיר מען האט האָט האבן
        האָבן הא הי קיין קען"""),
    "vi": Language("Vietnamese", letters="\u1ea0-\u1ef9", letters_share=0.05, tonal=True),
}
# fmt: on
"""ISO 639-1 code to language."""
