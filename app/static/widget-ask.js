/* Questions in the search box: a button below the results, and a view with the answer that a language model writes.
 * widget.js loads this module when the box is first used, on sites where `ask` of GET /v1/client-info is true.
 *
 * Results always come first, and Enter always searches. Without an answer, the panel shows the results again, with one
 * sentence about the reason. The answer is shown as text, never as HTML; it links only to its sources.
 */
const MIN_QUESTION_LENGTH = 3; // The service's limit.
const MAX_QUESTION_LENGTH = 170; // That of the box's field, because a question without an answer becomes a search.
const MAX_TURNS = 3; // Earlier questions that the service accepts.
const MAX_EARLIER_ANSWER_LENGTH = 8000;

const TEXT_NAMES = "ask askNote asking sources copy copied helpful yes no thanks followUp back unanswered askFailed";
const TEXTS = {
  en: "Ask|AI answers from these pages. Check the sources.|Searching the pages…|Sources|Copy|Copied|Helpful?|Yes|No|Thank you.|Ask a follow-up question|Back to results|The pages do not answer this question. Results of the search:|No answer is available at the moment. Results of the search:",
  de: "Fragen|KI antwortet aus diesen Seiten. Bitte Quellen prüfen.|Seiten werden durchsucht…|Quellen|Kopieren|Kopiert|Hilfreich?|Ja|Nein|Danke.|Weitere Frage stellen|Zurück zu den Treffern|Die Seiten beantworten diese Frage nicht. Treffer der Suche:|Zurzeit ist keine Antwort verfügbar. Treffer der Suche:",
  fr: "Demander|L’IA répond à partir de ces pages. Vérifiez les sources.|Recherche dans les pages…|Sources|Copier|Copié|Utile ?|Oui|Non|Merci.|Poser une autre question|Retour aux résultats|Les pages ne répondent pas à cette question. Résultats de la recherche :|Aucune réponse n’est disponible pour le moment. Résultats de la recherche :",
  es: "Preguntar|La IA responde a partir de estas páginas. Compruebe las fuentes.|Buscando en las páginas…|Fuentes|Copiar|Copiado|¿Le ha sido útil?|Sí|No|Gracias.|Hacer otra pregunta|Volver a los resultados|Las páginas no responden a esta pregunta. Resultados de la búsqueda:|No hay respuesta disponible por ahora. Resultados de la búsqueda:",
  it: "Chiedi|L’IA risponde in base a queste pagine. Verificare le fonti.|Ricerca nelle pagine…|Fonti|Copia|Copiato|Utile?|Sì|No|Grazie.|Fai un’altra domanda|Torna ai risultati|Le pagine non rispondono a questa domanda. Risultati della ricerca:|Nessuna risposta disponibile al momento. Risultati della ricerca:",
  pt: "Perguntar|A IA responde com base nestas páginas. Verifique as fontes.|A pesquisar nas páginas…|Fontes|Copiar|Copiado|Foi útil?|Sim|Não|Obrigado.|Fazer outra pergunta|Voltar aos resultados|As páginas não respondem a esta pergunta. Resultados da pesquisa:|Nenhuma resposta disponível de momento. Resultados da pesquisa:",
  nl: "Vragen|AI antwoordt op basis van deze pagina’s. Controleer de bronnen.|Pagina’s worden doorzocht…|Bronnen|Kopiëren|Gekopieerd|Nuttig?|Ja|Nee|Bedankt.|Stel een vervolgvraag|Terug naar de resultaten|De pagina’s beantwoorden deze vraag niet. Zoekresultaten:|Er is nu geen antwoord beschikbaar. Zoekresultaten:",
  sv: "Fråga|AI svarar utifrån dessa sidor. Kontrollera källorna.|Söker igenom sidorna…|Källor|Kopiera|Kopierat|Till hjälp?|Ja|Nej|Tack.|Ställ en följdfråga|Tillbaka till resultaten|Sidorna besvarar inte frågan. Sökresultat:|Inget svar är tillgängligt just nu. Sökresultat:",
  da: "Spørg|AI svarer ud fra disse sider. Tjek kilderne.|Gennemsøger siderne…|Kilder|Kopiér|Kopieret|Nyttigt?|Ja|Nej|Tak.|Stil et opfølgende spørgsmål|Tilbage til resultaterne|Siderne besvarer ikke spørgsmålet. Søgeresultater:|Der er intet svar tilgængeligt lige nu. Søgeresultater:",
  no: "Spør|KI svarer ut fra disse sidene. Sjekk kildene.|Søker gjennom sidene…|Kilder|Kopier|Kopiert|Nyttig?|Ja|Nei|Takk.|Still et oppfølgingsspørsmål|Tilbake til resultatene|Sidene besvarer ikke spørsmålet. Søkeresultater:|Ingen svar er tilgjengelig akkurat nå. Søkeresultater:",
  fi: "Kysy|Tekoäly vastaa näiden sivujen perusteella. Tarkista lähteet.|Haetaan sivuilta…|Lähteet|Kopioi|Kopioitu|Oliko hyötyä?|Kyllä|Ei|Kiitos.|Kysy lisää|Takaisin tuloksiin|Sivut eivät vastaa tähän kysymykseen. Hakutulokset:|Vastausta ei ole juuri nyt saatavilla. Hakutulokset:",
  hu: "Kérdés|Az MI ezekből az oldalakból válaszol. Ellenőrizze a forrásokat.|Oldalak átkutatása…|Források|Másolás|Másolva|Hasznos?|Igen|Nem|Köszönjük.|További kérdés|Vissza a találatokhoz|Az oldalak nem válaszolnak erre a kérdésre. Találatok:|Jelenleg nem érhető el válasz. Találatok:",
  ro: "Întreabă|IA răspunde pe baza acestor pagini. Verificați sursele.|Se caută în pagini…|Surse|Copiază|Copiat|Util?|Da|Nu|Mulțumim.|Pune încă o întrebare|Înapoi la rezultate|Paginile nu răspund la această întrebare. Rezultatele căutării:|Momentan nu este disponibil niciun răspuns. Rezultatele căutării:",
  pl: "Zapytaj|SI odpowiada na podstawie tych stron. Sprawdź źródła.|Przeszukiwanie stron…|Źródła|Kopiuj|Skopiowano|Pomocne?|Tak|Nie|Dziękujemy.|Zadaj kolejne pytanie|Wróć do wyników|Strony nie odpowiadają na to pytanie. Wyniki wyszukiwania:|Odpowiedź jest teraz niedostępna. Wyniki wyszukiwania:",
  cs: "Zeptat se|AI odpovídá z těchto stránek. Ověřte zdroje.|Prohledávání stránek…|Zdroje|Kopírovat|Zkopírováno|Pomohlo to?|Ano|Ne|Děkujeme.|Položit další otázku|Zpět na výsledky|Stránky na tuto otázku neodpovídají. Výsledky hledání:|Odpověď teď není k dispozici. Výsledky hledání:",
  tr: "Sor|Yapay zekâ bu sayfalardan yanıtlar. Kaynakları kontrol edin.|Sayfalar aranıyor…|Kaynaklar|Kopyala|Kopyalandı|Yararlı mı?|Evet|Hayır|Teşekkürler.|Başka bir soru sor|Sonuçlara dön|Sayfalar bu soruyu yanıtlamıyor. Arama sonuçları:|Şu anda yanıt verilemiyor. Arama sonuçları:",
  id: "Tanya|AI menjawab dari halaman ini. Periksa sumbernya.|Mencari di halaman…|Sumber|Salin|Disalin|Membantu?|Ya|Tidak|Terima kasih.|Ajukan pertanyaan lanjutan|Kembali ke hasil|Halaman tidak menjawab pertanyaan ini. Hasil pencarian:|Jawaban tidak tersedia saat ini. Hasil pencarian:",
  ca: "Pregunta|La IA respon a partir d’aquestes pàgines. Comproveu les fonts.|S’està cercant a les pàgines…|Fonts|Copia|Copiat|Us ha estat útil?|Sí|No|Gràcies.|Feu una altra pregunta|Torna als resultats|Les pàgines no responen aquesta pregunta. Resultats de la cerca:|Ara mateix no hi ha cap resposta disponible. Resultats de la cerca:",
  eu: "Galdetu|AAk orri hauetatik erantzuten du. Egiaztatu iturriak.|Orrietan bilatzen…|Iturriak|Kopiatu|Kopiatuta|Lagungarria?|Bai|Ez|Eskerrik asko.|Egin beste galdera bat|Itzuli emaitzetara|Orriek ez diote galdera honi erantzuten. Bilaketaren emaitzak:|Une honetan ez dago erantzunik. Bilaketaren emaitzak:",
  et: "Küsi|AI vastab nende lehtede põhjal. Kontrolli allikaid.|Lehtedelt otsimine…|Allikad|Kopeeri|Kopeeritud|Kas oli abi?|Jah|Ei|Aitäh.|Küsi veel|Tagasi tulemuste juurde|Lehed ei vasta sellele küsimusele. Otsingu tulemused:|Vastust ei ole praegu saada. Otsingu tulemused:",
  ga: "Fiafraigh|Freagraíonn IS ó na leathanaigh seo. Seiceáil na foinsí.|Na leathanaigh á gcuardach…|Foinsí|Cóipeáil|Cóipeáilte|Cabhrach?|Tá|Níl|Go raibh maith agat.|Cuir ceist eile|Ar ais chuig na torthaí|Ní fhreagraíonn na leathanaigh an cheist seo. Torthaí an chuardaigh:|Níl freagra ar fáil faoi láthair. Torthaí an chuardaigh:",
  lt: "Klausti|DI atsako pagal šiuos puslapius. Patikrinkite šaltinius.|Ieškoma puslapiuose…|Šaltiniai|Kopijuoti|Nukopijuota|Naudinga?|Taip|Ne|Ačiū.|Užduoti kitą klausimą|Grįžti prie rezultatų|Puslapiai neatsako į šį klausimą. Paieškos rezultatai:|Atsakymo šiuo metu nėra. Paieškos rezultatai:",
  eo: "Demandi|AI respondas el ĉi tiuj paĝoj. Kontrolu la fontojn.|Serĉado en la paĝoj…|Fontoj|Kopii|Kopiita|Ĉu helpa?|Jes|Ne|Dankon.|Fari alian demandon|Reen al la rezultoj|La paĝoj ne respondas ĉi tiun demandon. Rezultoj de la serĉo:|Respondo nun ne estas disponebla. Rezultoj de la serĉo:",
  el: "Ερώτηση|Η ΤΝ απαντά από αυτές τις σελίδες. Ελέγξτε τις πηγές.|Αναζήτηση στις σελίδες…|Πηγές|Αντιγραφή|Αντιγράφηκε|Χρήσιμο;|Ναι|Όχι|Ευχαριστούμε.|Κάντε άλλη μια ερώτηση|Πίσω στα αποτελέσματα|Οι σελίδες δεν απαντούν σε αυτή την ερώτηση. Αποτελέσματα αναζήτησης:|Δεν υπάρχει διαθέσιμη απάντηση αυτή τη στιγμή. Αποτελέσματα αναζήτησης:",
  ru: "Спросить|ИИ отвечает по этим страницам. Проверяйте источники.|Поиск по страницам…|Источники|Копировать|Скопировано|Полезно?|Да|Нет|Спасибо.|Задать ещё один вопрос|Назад к результатам|На страницах нет ответа на этот вопрос. Результаты поиска:|Ответ сейчас недоступен. Результаты поиска:",
  sr: "Питај|ВИ одговара на основу ових страница. Проверите изворе.|Претрага страница…|Извори|Копирај|Копирано|Корисно?|Да|Не|Хвала.|Постави још једно питање|Назад на резултате|Странице не одговарају на ово питање. Резултати претраге:|Одговор тренутно није доступан. Резултати претраге:",
  ar: "اسأل|يجيب الذكاء الاصطناعي من هذه الصفحات. تحقق من المصادر.|جارٍ البحث في الصفحات…|المصادر|نسخ|تم النسخ|هل كان مفيدًا؟|نعم|لا|شكرًا.|اطرح سؤالًا آخر|العودة إلى النتائج|لا تجيب الصفحات عن هذا السؤال. نتائج البحث:|لا تتوفر إجابة حاليًا. نتائج البحث:",
  fa: "بپرسید|هوش مصنوعی از این صفحه‌ها پاسخ می‌دهد. منابع را بررسی کنید.|در حال جستجوی صفحه‌ها…|منابع|رونوشت|رونوشت شد|مفید بود؟|بله|خیر|سپاس.|پرسش بعدی|بازگشت به نتایج|صفحه‌ها به این پرسش پاسخ نمی‌دهند. نتایج جستجو:|در حال حاضر پاسخی در دسترس نیست. نتایج جستجو:",
  hi: "पूछें|AI इन पृष्ठों से उत्तर देता है। स्रोत जाँचें।|पृष्ठों में खोज रहे हैं…|स्रोत|कॉपी करें|कॉपी किया गया|उपयोगी?|हाँ|नहीं|धन्यवाद।|एक और प्रश्न पूछें|परिणामों पर वापस|पृष्ठ इस प्रश्न का उत्तर नहीं देते। खोज के परिणाम:|अभी कोई उत्तर उपलब्ध नहीं है। खोज के परिणाम:",
  ne: "सोध्नुहोस्|AI ले यी पृष्ठहरूबाट उत्तर दिन्छ। स्रोत जाँच्नुहोस्।|पृष्ठहरूमा खोज्दै…|स्रोतहरू|प्रतिलिपि|प्रतिलिपि गरियो|उपयोगी?|हो|होइन|धन्यवाद।|अर्को प्रश्न सोध्नुहोस्|परिणामहरूमा फर्कनुहोस्|पृष्ठहरूले यो प्रश्नको उत्तर दिँदैनन्। खोजका परिणाम:|अहिले उत्तर उपलब्ध छैन। खोजका परिणाम:",
  hy: "Հարցնել|ԱԲ-ն պատասխանում է այս էջերից։ Ստուգեք աղբյուրները։|Որոնում էջերում…|Աղբյուրներ|Պատճենել|Պատճենված է|Օգտակա՞ր էր|Այո|Ոչ|Շնորհակալություն։|Տալ ևս մեկ հարց|Վերադառնալ արդյունքներին|Էջերը չեն պատասխանում այս հարցին։ Որոնման արդյունքները՝|Այս պահին պատասխան չկա։ Որոնման արդյունքները՝",
  ta: "கேள்|இந்தப் பக்கங்களிலிருந்து AI பதிலளிக்கிறது. மூலங்களைச் சரிபார்க்கவும்.|பக்கங்களில் தேடுகிறது…|மூலங்கள்|நகலெடு|நகலெடுக்கப்பட்டது|பயனுள்ளதா?|ஆம்|இல்லை|நன்றி.|மற்றொரு கேள்வி கேட்க|முடிவுகளுக்குத் திரும்பு|இந்தக் கேள்விக்குப் பக்கங்கள் பதிலளிக்கவில்லை. தேடல் முடிவுகள்:|இப்போது பதில் கிடைக்கவில்லை. தேடல் முடிவுகள்:",
  yi: "פֿרעגן|קי ענטפֿערט פֿון די בלעטער. קאָנטראָלירט די מקורים.|מע זוכט אין די בלעטער…|מקורים|קאָפּירן|קאָפּירט|נוציק?|יאָ|ניין|אַ דאַנק.|שטעלן נאָך אַ פֿראַגע|צוריק צו די רעזולטאַטן|די בלעטער ענטפֿערן נישט אויף דער פֿראַגע. רעזולטאַטן פֿון זוכן:|איצט איז נישטאָ קיין ענטפֿער. רעזולטאַטן פֿון זוכן:",
  ja: "質問する|AIがこれらのページから回答します。出典を確認してください。|ページを検索しています…|出典|コピー|コピーしました|役に立ちましたか？|はい|いいえ|ありがとうございます。|続けて質問する|検索結果に戻る|ページにこの質問の答えはありません。検索結果：|現在、回答できません。検索結果：",
  zh: "提问|AI 根据这些页面回答。请核对来源。|正在搜索页面…|来源|复制|已复制|有帮助吗？|是|否|谢谢。|继续提问|返回搜索结果|页面中没有这个问题的答案。搜索结果：|暂时无法回答。搜索结果：",
  ko: "질문하기|AI가 이 페이지들을 바탕으로 답변합니다. 출처를 확인하세요.|페이지를 검색하는 중…|출처|복사|복사됨|도움이 되었나요?|예|아니요|감사합니다.|이어서 질문하기|검색 결과로 돌아가기|페이지에 이 질문의 답이 없습니다. 검색 결과:|지금은 답변할 수 없습니다. 검색 결과:",
  th: "ถาม|AI ตอบจากหน้าเหล่านี้ โปรดตรวจสอบแหล่งที่มา|กำลังค้นหาในหน้าต่าง ๆ…|แหล่งที่มา|คัดลอก|คัดลอกแล้ว|มีประโยชน์ไหม|ใช่|ไม่ใช่|ขอบคุณ|ถามคำถามต่อ|กลับไปที่ผลลัพธ์|หน้าต่าง ๆ ไม่มีคำตอบของคำถามนี้ ผลการค้นหา:|ขณะนี้ไม่มีคำตอบ ผลการค้นหา:",
  vi: "Hỏi|AI trả lời từ các trang này. Hãy kiểm tra nguồn.|Đang tìm trong các trang…|Nguồn|Sao chép|Đã sao chép|Có hữu ích không?|Có|Không|Cảm ơn bạn.|Hỏi thêm|Quay lại kết quả|Các trang không trả lời câu hỏi này. Kết quả tìm kiếm:|Hiện chưa có câu trả lời. Kết quả tìm kiếm:",
};

const STYLE = `
  .ask { display: none; align-items: center; gap: 10px; margin: 0 8px 8px; padding: 8px 12px; min-height: 44px; text-align: start; color: var(--accent); background: var(--tint); border-color: var(--rule); }
  #results:has(#hit-0) + .ask { display: flex; }
  .ask:hover { border-color: var(--accent); }
  .ask b { flex: none; font-weight: 600; }
  .ask .note { min-width: 0; }
  .note { margin: 0; font-size: 13px; color: var(--soft); }
  .panel.asking > :not(.conversation) { display: none !important; }
  .conversation { display: flex; flex: 0 1 auto; flex-direction: column; min-height: 0; }
  .conversation > * { flex: none; }
  .back { display: flex; align-items: center; gap: 6px; margin: 4px 8px; padding: 4px 8px; align-self: flex-start; color: var(--soft); background: none; border: 0; font-size: 14px; }
  .back:hover { color: var(--text); background: var(--chosen); }
  .back svg { width: 18px; height: 18px; }
  .back svg:dir(rtl) { scale: -1 1; }
  .turns { position: relative; flex: 0 1 auto; min-height: 0; padding: 4px 20px 8px; overflow-y: auto; overscroll-behavior: contain; scrollbar-width: thin; overflow-wrap: anywhere; }
  .turn + .turn { margin-top: 20px; padding-top: 16px; border-top: 1px solid var(--rule); }
  h2 { margin: 0; font: inherit; font-size: 18px; font-weight: 600; line-height: 1.35; }
  h2:focus-visible { outline: none; }
  h3 { margin: 16px 0 2px; font: inherit; font-size: 13px; font-weight: 600; color: var(--soft); }
  .wait { margin: 8px 0 12px; color: var(--soft); }
  @media (prefers-reduced-motion: no-preference) { .wait { animation: wait 1.6s ease-in-out infinite; } }
  @keyframes wait { 50% { opacity: .5; } }
  .text { margin-top: 8px; user-select: text; }
  .text > * { margin: 0 0 10px; white-space: pre-line; }
  .text > :last-child { margin-bottom: 0; }
  .text :is(ul, ol) { padding: 0; padding-inline-start: 20px; list-style: disc; }
  .text ol { padding-inline-start: 24px; list-style: decimal; }
  .text li { margin: 0 0 4px; }
  code { padding: 1px 4px; font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .88em; background: var(--tint); border-radius: 4px; }
  pre { padding: 10px 12px; overflow-x: auto; scrollbar-width: thin; overflow-wrap: normal; direction: ltr; text-align: left; background: var(--tint); border: 1px solid var(--rule); border-radius: var(--radius); }
  .text > pre { white-space: pre; }
  pre code { padding: 0; background: none; }
  .cite { display: inline; padding: 1px 6px; margin-inline-start: 3px; font-size: 12px; font-weight: 600; text-decoration: none; color: var(--accent); background: var(--chosen); border-radius: 5px; vertical-align: 1px; }
  .cite:hover { color: var(--ground); background: var(--accent); }
  .found { margin: 0 -12px; padding: 0; list-style: none; }
  .found .hit { padding-block: 5px; }
  .found .hit .title { font-size: 15px; font-weight: 500; color: var(--accent); }
  .found .number { display: grid; place-items: center; height: 20px; margin-top: 1px; font-size: 12px; font-weight: 600; background: var(--chosen); color: var(--accent); border-radius: 5px; }
  .found .hit:hover .number { background: var(--ground); }
  .actions { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 20px; margin-top: 10px; font-size: 14px; color: var(--soft); }
  .actions > span { display: flex; flex-wrap: wrap; align-items: center; gap: 8px; }
  .actions button { min-height: 32px; padding: 3px 12px; font-size: 14px; border-color: var(--rule); }
  .actions button:hover { border-color: var(--accent); }
  .actions [aria-pressed="true"] { color: var(--accent); background: var(--chosen); border-color: var(--accent); font-weight: 600; }
  .follow { padding: 10px 20px 0; border-top: 1px solid var(--rule); }
  .follow input { flex: 1; min-width: 0; min-height: 44px; padding: 8px 12px; margin: 0; }
  .follow button { min-height: 44px; padding: 8px 16px; font-weight: 600; color: var(--ground); background: var(--accent); border-color: var(--accent); }
  .conversation > .note { padding: 8px 20px 10px; }
  @media (forced-colors: active) { .cite, .number { outline: 1px solid; } }
`;

// Icons by Lucide (https://lucide.dev), under the ISC License.
const ICONS = {
  ask: "M11 2.8a1 1 0 0 1 2 0l1 5.6a2 2 0 0 0 1.6 1.6l5.6 1a1 1 0 0 1 0 2l-5.6 1a2 2 0 0 0-1.6 1.6l-1 5.6a1 1 0 0 1-2 0l-1-5.6A2 2 0 0 0 8.4 14l-5.6-1a1 1 0 0 1 0-2l5.6-1A2 2 0 0 0 10 8.4zM20 2v4M22 4h-4",
  back: "m12 19-7-7 7-7M19 12H5",
};

const CITATION = /[ \t]?\[(\d+)\]/;
const FENCE = /^\s*```/;
const ITEM = /^\s*(?:- |(\d{1,3})[.)] )/;

/** "One.\n\n3. two\n4. three" -> [{ name: "p", parts: ["One."] }, { name: "ol", parts: ["two", "three"], start: "3" }] */
function blocksOf(text) {
  const blocks = [];
  let isCode = false;
  let mustBegin = true;
  const add = (name, part, separator) => {
    const block = blocks.at(-1);
    if (mustBegin || block.name !== name) blocks.push({ name, parts: [part] });
    else if (separator === undefined) block.parts.push(part);
    else block.parts.push(block.parts.pop() + separator + part);
    mustBegin = false;
  };
  for (const line of text.split("\n")) {
    if (FENCE.test(line)) {
      isCode = !isCode;
      mustBegin = true;
      continue;
    }
    const [mark, start] = (!isCode && ITEM.exec(line)) || [];
    const previous = blocks.at(-1)?.name;
    if (isCode) add("pre", line, "\n");
    else if (!line.trim()) mustBegin = true;
    else if (mark) {
      const name = start ? "ol" : "ul";
      mustBegin = previous !== name;
      add(name, line.slice(mark.length));
      if (previous !== name) blocks.at(-1).start = start;
    } else if (!mustBegin && /l$/.test(previous)) add(previous, line.trim(), "\n");
    else add("p", line, "\n");
  }
  return blocks;
}

/** Yields the events of a stream: { name, data }. */
async function* readEvents(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let pending = "";
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    const blocks = (pending + piece.value).split("\n\n");
    pending = blocks.pop();
    for (const block of blocks) {
      const [, name, data] = /^event: (\w+)\ndata: (.*)$/s.exec(block) ?? [];
      if (name) yield { name, data: JSON.parse(data) };
    }
  }
}

const filled = new WeakSet(); // Panels that have the button.

/** Adds the button to a panel of results, once.
 *
 * `input` is the box's field; `reopen` shows its results again; `fitPanel` updates the position of the panel.
 */
export function addAsk(BASE, core, { input, panel, reopen, fitPanel }) {
  if (filled.has(panel)) return;
  filled.add(panel);
  core.addTexts(TEXT_NAMES, TEXTS);
  const { make, text, textNodes, langOf, pageLang, settings } = core;
  const root = panel.getRootNode();
  core.applyStyles(root, STYLE);

  const icon = (name) => {
    const svg = core.icon("clear");
    svg.firstChild.setAttribute("d", ICONS[name]);
    return svg;
  };
  const makeText = (name, key, attributes = {}) => make(name, { ...attributes, ...langOf(key) }, text(key));
  const makeButton = (key, attributes = {}) => makeText("button", key, { type: "button", ...attributes });

  const results = panel.querySelector("#results");
  const button = make("button", { type: "button", class: "ask", part: "ask" },
    icon("ask"), makeText("b", "ask", { id: "ask-label" }), " ", makeText("span", "askNote", { class: "note" }));
  const message = make("p", { class: "notice", part: "status", hidden: "" }); // Why the results are shown instead of an answer.
  // Outside of the panel, because screen readers don't announce a live region that appears together with its text.
  const live = make("div", { class: "live", role: "status" });
  results.after(button);
  panel.prepend(message);
  input.form.append(live);

  let view = null; // The elements of the view while it is shown.
  let turns = []; // Questions and answers of the view.
  let request = new AbortController();

  const say = (...nodes) => live.replaceChildren(...nodes);

  // --- The service

  const post = (path, body, options) => fetch(BASE + path, {
    method: "POST", credentials: "omit", body: JSON.stringify(body), ...options,
    headers: { Authorization: `Bearer ${settings.key}`, "Content-Type": "application/json", "X-Search-Channel": "box", "X-Search-Page": location.pathname, ...(!settings.analytics && { "X-Search-Analytics": "false" }) },
  });

  async function requestAnswer(question, signal) {
    const history = turns.slice(-MAX_TURNS).map(({ question: q, answer }) => ({ q, answer: answer.slice(0, MAX_EARLIER_ANSWER_LENGTH) }));
    const body = { q: question, history, session_id: core.service.session, filters: core.currentFilters(), stream: true };
    const response = await post("/v1/ask", body, { signal });
    // Perhaps no page has the field of the context.
    if (response.status === 400 && body.filters !== settings.filters) return post("/v1/ask", { ...body, filters: settings.filters }, { signal });
    return response;
  }

  async function sendFeedback(id, helpful) {
    const response = await post(`/v1/ask/${id}/feedback`, { helpful });
    if (!response.ok) throw new Error(`feedback has status ${response.status}`);
  }

  // --- One question and its answer

  const urlOf = ({ url, anchor }) => (anchor ? `${url.split("#")[0]}#${anchor}` : url);

  // Makes the link of a source. The box handles it as a result without a position.
  const linkTo = (source, query) => core.makeHit({ title: source.title || source.url, url: urlOf(source), snippet: "" }, null, { query });

  const citedSources = ({ answer, sources }) => sources.filter(({ n }) => answer.includes(`[${n}]`));

  function citation(source, question) {
    const link = linkTo(source, question);
    link.className = "cite";
    link.replaceChildren(String(source.n));
    link.setAttribute("aria-label", `${source.n}: ${source.title}`);
    link.title = source.title;
    return link;
  }

  // Returns the nodes of a line: text, code, and links of sources.
  const lineNodes = (line, question, sources) => line.split(/(`+[^`\n]+`+)/).flatMap((part, isCode) => {
    if (isCode % 2) return [make("code", {}, part.replace(/^`+|`+$/g, ""))];
    return part.split(CITATION).map((piece, isNumber) => {
      if (isNumber % 2 === 0) return piece;
      const source = sources.find(({ n }) => n === Number(piece));
      return source ? citation(source, question) : "";
    });
  });

  function makeBlock({ name, parts, start }, question, sources) {
    if (name === "pre") return make("pre", { tabindex: "0" }, make("code", {}, ...parts));
    if (name !== "p") return make(name, start ? { start } : {}, ...parts.map((part) => make("li", {}, ...lineNodes(part, question, sources))));
    return make("p", {}, ...lineNodes(parts[0], question, sources));
  }

  function showText(turn, content) {
    const hasFocus = content.contains(root.activeElement);
    if (hasFocus) view.focus(); // Otherwise, the box would lose the focus and close.
    content.replaceChildren(...blocksOf(turn.answer).map((block) => makeBlock(block, turn.question, turn.sources)));
    fitPanel();
  }

  function sourceList(turn) {
    const links = citedSources(turn).map((source) => {
      const link = linkTo(source, turn.question);
      link.querySelector(".icon")?.replaceWith(make("span", { class: "icon number" }, String(source.n)));
      return make("li", {}, link);
    });
    return [makeText("h3", "sources"), make("ol", { class: "found", role: "list" }, ...links)];
  }

  function copyButton(turn) {
    const copy = makeButton("copy");
    copy.addEventListener("click", async () => {
      const list = citedSources(turn).map((source) => `[${source.n}] ${source.title} ${urlOf(source)}`);
      try {
        await navigator.clipboard.writeText(`${turn.answer}\n\n${list.join("\n")}`);
      } catch (error) {
        console.warn("Site search: the answer could not be copied.", error);
        return;
      }
      copy.replaceChildren(...textNodes("copied"));
      say(...textNodes("copied"));
    });
    return copy;
  }

  function feedbackButtons(id) {
    const thanks = makeText("span", "thanks", { hidden: "" });
    const buttons = ["yes", "no"].map((key) => makeButton(key, { "aria-pressed": "false" }));
    buttons.forEach((pressed, index) => pressed.addEventListener("click", async () => {
      try {
        await sendFeedback(id, index === 0);
      } catch (error) {
        console.warn("Site search: the feedback could not be sent.", error);
        return;
      }
      for (const each of buttons) each.setAttribute("aria-pressed", String(each === pressed));
      thanks.hidden = false;
      say(...textNodes("thanks"));
    }));
    return make("span", { role: "group", "aria-labelledby": `helpful-${id}` }, makeText("span", "helpful", { id: `helpful-${id}` }), ...buttons, thanks);
  }

  // Shows a question, and its answer while it arrives. Returns the text that explains why there is no answer; "" if there is one.
  async function writeTurn(question, signal) {
    const heading = make("h2", { tabindex: "-1", ...pageLang }, question);
    const wait = makeText("p", "asking", { class: "wait" });
    const content = make("div", { class: "text", "aria-busy": "true", ...pageLang });
    const article = make("article", { class: "turn" }, heading, wait, content);
    const list = view.querySelector(".turns");
    view.querySelector(".follow").hidden = true;
    list.append(article);
    let offset = list.scrollTop;
    // Keeps the question at the top while its answer grows, unless the visitor has scrolled.
    const scroll = () => {
      if (list.scrollTop !== offset) return;
      list.scrollTop = article.offsetTop;
      offset = list.scrollTop;
    };
    scroll();
    heading.focus({ preventScroll: true });
    say(...textNodes("asking"));
    fitPanel();

    const turn = { question, answer: "", sources: [] };
    const response = await requestAnswer(question, signal);
    if (!response.ok) throw new Error(`the question has status ${response.status}`);
    for await (const { name, data } of readEvents(response)) {
      if (name === "sources") turn.sources = data.sources;
      else if (name === "text") {
        wait.remove();
        turn.answer += data.text;
        showText(turn, content);
        scroll();
      } else if (name === "error") throw new Error(data.message);
      else if (name === "done") {
        if (!data.answered) return "unanswered";
        turns.push(turn);
        content.removeAttribute("aria-busy");
        const canCopy = Boolean(navigator.clipboard); // Only in pages with HTTPS.
        const feedback = settings.analytics ? [feedbackButtons(data.ask_id)] : []; // There is feedback only on stored questions.
        article.append(...sourceList(turn), make("div", { class: "actions" }, ...(canCopy ? [copyButton(turn)] : []), ...feedback));
        view.querySelector(".follow").hidden = false;
        say(turn.answer.replace(new RegExp(CITATION, "g"), ""));
        fitPanel();
        scroll();
        return "";
      }
    }
    throw new Error("the answer was cut");
  }

  async function ask(question) {
    request = new AbortController();
    const { signal } = request;
    let failure = "askFailed";
    try {
      failure = await writeTurn(question, signal);
    } catch (error) {
      if (signal.aborted) return;
      console.warn("Site search:", error);
    }
    if (failure && !signal.aborted) showResults(failure, question);
  }

  // --- The view

  function open() {
    const question = input.value.trim();
    if (question.length < MIN_QUESTION_LENGTH) return;
    turns = [];
    message.hidden = true;
    const back = make("button", { type: "button", class: "back", ...langOf("back") }, icon("back"), text("back"));
    const field = make("input", { maxlength: MAX_QUESTION_LENGTH, "aria-label": text("followUp"), placeholder: text("followUp"), autocomplete: "off", enterkeyhint: "send", ...langOf("followUp") });
    const follow = make("form", { class: "follow", hidden: "" }, field, makeText("button", "ask"));
    view = make("section", { class: "conversation", part: "conversation", tabindex: "-1", "aria-labelledby": "ask-label" },
      back, make("div", { class: "turns" }), follow, makeText("p", "askNote", { class: "note" }));
    back.addEventListener("click", goBack);
    follow.addEventListener("submit", (event) => {
      event.preventDefault();
      const followUp = field.value.trim();
      if (followUp.length < MIN_QUESTION_LENGTH) return;
      field.value = "";
      ask(followUp);
    });
    view.addEventListener("keydown", (event) => { if (isEscape(event)) goBack(event); });
    view.addEventListener("mousedown", (event) => event.stopPropagation()); // Unlike in the results, visitors select text.
    panel.append(view);
    panel.classList.add("asking");
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    ask(question);
  }

  const isEscape = (event) => event.key === "Escape" && !event.isComposing && event.keyCode !== 229;

  // Removes the view. The visitor's focus must be elsewhere.
  function close() {
    request.abort();
    panel.classList.remove("asking");
    view?.remove();
    view = null;
    say();
  }

  function goBack(event) {
    event.preventDefault();
    event.stopPropagation();
    panel.classList.remove("asking"); // The button can only have the focus while it is visible.
    button.focus();
    close();
    reopen();
  }

  function showResults(key, question) {
    (matchMedia("(pointer: coarse)").matches ? panel : input).focus(); // The keyboard of a phone would hide the results.
    close();
    if (input.value.trim() !== question) {
      input.value = question;
      input.dispatchEvent(new Event("input"));
    } else reopen();
    message.replaceChildren(...textNodes(key));
    message.hidden = false;
    say(...textNodes(key));
    fitPanel();
  }

  button.addEventListener("click", open);

  const updateButton = () => { button.hidden = input.value.trim().length < MIN_QUESTION_LENGTH; };
  updateButton();
  input.addEventListener("input", () => {
    updateButton();
    message.hidden = true;
    if (view) close();
  });
  // The field's keys are for the results, which come back.
  input.addEventListener("keydown", (event) => {
    if (!view || !(isEscape(event) || ["ArrowDown", "ArrowUp", "Enter"].includes(event.key))) return;
    close();
    reopen();
    if (!isEscape(event)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, { capture: true });
  new MutationObserver(() => {
    if (!panel.hidden) return;
    message.hidden = true;
    if (view) close();
  }).observe(panel, { attributeFilter: ["hidden"] });
  fitPanel();
}
