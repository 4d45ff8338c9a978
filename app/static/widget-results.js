/* The full view of the search box: facets, sorting, and "load more". widget.js loads it when it is needed.
 *
 * Its state is in the page's address: q, page, sort, and f.<field> for each value that is chosen. All other parameters
 * of the address belong to the page and are kept. What the engine answers is shown as text, never as HTML.
 *
 * What `core` gives, which widget.js makes:
 *
 *   element                            whom events come from
 *   input                              the box's field, where the page shows it beside the view: that has none of its own
 *   settings                           what the box was set up with (see `settingsOf`)
 *   learn(names, table)                adds texts: "more less", { en: "More|Less", … }; `texts` of the page wins
 *   text(key, values)                  a text of the box's language, {name} replaced
 *   spoken(key, values)                the same as nodes, marked up where the language or the direction is another
 *   counted(answer)                    nodes that tell how many results there are, and what was searched instead of the query
 *   notice(answer), links(answer)      nodes with what the owner tells; links for where nothing is found
 *   popular()                          queries that others search for most, as a promise
 *   follow(answer, query)              goes where the owner wants the search to lead; whether there is such a place
 *   own, page                          attributes lang and dir: of the box's own texts, of results
 *   number(n)                          a number as the language writes it
 *   make(name, attributes, …children)  an element
 *   icon(name)                         a picture, such as "none" or "problem"
 *   field(input)                       the field with its icon and the button that empties it
 *   dress(root, css)                   gives a shadow root the box's style sheet, and more
 *   wrap(…children)                    what must surround all in such a root: the page's style ends there
 *   showAbove(dialog)                  opens a dialog; the page behind it stands still
 *   ask(query, {offset, limit, sort, facets, filters, isRecorded, signal})
 *                                      → {query, queryId, total, hits, facets, canRefine, missing, …}; throws a Refusal,
 *                                      whose `reason` is a key of the texts. `filters` is {field: [values]}, `sort`
 *                                      ["f:asc"], `facets` names; the answer's {field: {value: count}}. What an engine
 *                                      that is reached directly cannot do, is not asked for (`canRefine` is false).
 *                                      `isRecorded` is false for what analytics know already. `missing` tells the
 *                                      page's context where there are results only without it
 *   hit(hit, position, {query, queryId})
 *                                      the link (or text) of a hit, `position` from 1: choosing it reports all there is
 *   sections(hit, position, {query, queryId})
 *                                      the links of its sections, likewise
 *   answer({answer, hits, …})          a figure with the passage that answers the query and, as its last child, the link to
 *                                      it; nothing, where there is none
 *   remember(query)                    keeps a recent search, if the page wants that
 *   log(answer)                        tells the statistics what somebody looked for, where the engine does not: once a query
 *   emit(type, detail)                 an event of the box: "search", "error"
 */

const PAGE = 20; // Results that "load more" adds.
const MOST_PAGES = 50;
const AT_ONCE = 100; // Most results of one answer.
const TYPING_MS = 150; // Between the last keystroke and the search.
const SLOW_MS = 400; // After which a search is said to be running.
const MOST_FACETS = 8;
const FIRST_VALUES = 8; // Values of a facet that are shown before "show all".
const LONGEST_VALUE = 80; // What is longer is no name of a group.
const QUOTED = "answer"; // What stands for its place among the hits.
const DATES = ["date:desc", "date:asc"];
const NO_FACETS = new Set(["id", "date"]);

const NAMES = "sort relevance newest oldest loadMore shown filters clearFilters showAll yes no again start author";
const TEXTS = {
  en: "Sort by|Relevance|Newest first|Oldest first|Load more|{n} of {all}|Filters|Remove all filters|Show all|Yes|No|Try again|What are you looking for?|Author",
  de: "Sortieren nach|Relevanz|Neueste zuerst|Älteste zuerst|Mehr laden|{n} von {all}|Filter|Alle Filter entfernen|Alle anzeigen|Ja|Nein|Noch einmal versuchen|Wonach suchen Sie?|Autor",
  fr: "Trier par|Pertinence|Plus récents d’abord|Plus anciens d’abord|Afficher plus|{n} sur {all}|Filtres|Supprimer tous les filtres|Tout afficher|Oui|Non|Réessayer|Que cherchez-vous ?|Auteur",
  es: "Ordenar por|Relevancia|Más recientes primero|Más antiguos primero|Cargar más|{n} de {all}|Filtros|Quitar todos los filtros|Mostrar todo|Sí|No|Reintentar|¿Qué está buscando?|Autor",
  it: "Ordina per|Rilevanza|Prima i più recenti|Prima i meno recenti|Carica altri|{n} di {all}|Filtri|Rimuovi tutti i filtri|Mostra tutto|Sì|No|Riprova|Che cosa cerca?|Autore",
  pt: "Ordenar por|Relevância|Mais recentes primeiro|Mais antigos primeiro|Carregar mais|{n} de {all}|Filtros|Remover todos os filtros|Mostrar tudo|Sim|Não|Tentar novamente|O que procura?|Autor",
  nl: "Sorteren op|Relevantie|Nieuwste eerst|Oudste eerst|Meer laden|{n} van {all}|Filters|Alle filters wissen|Alles tonen|Ja|Nee|Opnieuw proberen|Waar bent u naar op zoek?|Auteur",
  sv: "Sortera efter|Relevans|Nyaste först|Äldsta först|Visa fler|{n} av {all}|Filter|Ta bort alla filter|Visa alla|Ja|Nej|Försök igen|Vad letar du efter?|Författare",
  da: "Sortér efter|Relevans|Nyeste først|Ældste først|Vis flere|{n} af {all}|Filtre|Fjern alle filtre|Vis alle|Ja|Nej|Prøv igen|Hvad leder du efter?|Forfatter",
  no: "Sorter etter|Relevans|Nyeste først|Eldste først|Vis flere|{n} av {all}|Filtre|Fjern alle filtre|Vis alle|Ja|Nei|Prøv igjen|Hva leter du etter?|Forfatter",
  fi: "Järjestä|Osuvuus|Uusimmat ensin|Vanhimmat ensin|Näytä lisää|{n}/{all}|Suodattimet|Poista kaikki suodattimet|Näytä kaikki|Kyllä|Ei|Yritä uudelleen|Mitä etsit?|Tekijä",
  hu: "Rendezés|Relevancia|Legújabb elöl|Legrégebbi elöl|Több betöltése|{n} / {all}|Szűrők|Összes szűrő törlése|Összes megjelenítése|Igen|Nem|Újra|Mit keres?|Szerző",
  ro: "Sortează după|Relevanță|Cele mai noi întâi|Cele mai vechi întâi|Încarcă mai multe|{n} din {all}|Filtre|Elimină toate filtrele|Arată tot|Da|Nu|Încearcă din nou|Ce căutați?|Autor",
  pl: "Sortuj według|Trafność|Od najnowszych|Od najstarszych|Wczytaj więcej|{n} z {all}|Filtry|Usuń wszystkie filtry|Pokaż wszystkie|Tak|Nie|Spróbuj ponownie|Czego szukasz?|Autor",
  cs: "Seřadit podle|Relevance|Od nejnovějších|Od nejstarších|Načíst další|{n} z {all}|Filtry|Odebrat všechny filtry|Zobrazit vše|Ano|Ne|Zkusit znovu|Co hledáte?|Autor",
  tr: "Sırala|İlgi düzeyi|Önce en yeni|Önce en eski|Daha fazla yükle|{n} / {all}|Filtreler|Tüm filtreleri kaldır|Tümünü göster|Evet|Hayır|Yeniden dene|Ne arıyorsunuz?|Yazar",
  id: "Urutkan menurut|Relevansi|Terbaru dahulu|Terlama dahulu|Muat lebih banyak|{n} dari {all}|Filter|Hapus semua filter|Tampilkan semua|Ya|Tidak|Coba lagi|Apa yang Anda cari?|Penulis",
  ca: "Ordena per|Rellevància|Els més nous primer|Els més antics primer|Carrega’n més|{n} de {all}|Filtres|Suprimeix tots els filtres|Mostra-ho tot|Sí|No|Torna-ho a provar|Què busqueu?|Autor",
  eu: "Ordenatu honen arabera|Garrantzia|Berrienak lehenik|Zaharrenak lehenik|Kargatu gehiago|{n} / {all}|Iragazkiak|Kendu iragazki guztiak|Erakutsi guztiak|Bai|Ez|Saiatu berriro|Zer bilatzen duzu?|Egilea",
  et: "Järjesta|Asjakohasus|Uuemad eespool|Vanemad eespool|Näita veel|{n} / {all}|Filtrid|Eemalda kõik filtrid|Näita kõiki|Jah|Ei|Proovi uuesti|Mida otsid?|Autor",
  ga: "Sórtáil de réir|Ábharthacht|Is nuaí ar dtús|Is sine ar dtús|Lódáil tuilleadh|{n} as {all}|Scagairí|Bain gach scagaire|Taispeáin gach rud|Tá|Níl|Bain triail eile as|Cad atá á lorg agat?|Údar",
  lt: "Rikiuoti pagal|Atitiktį|Naujausi pirmiau|Seniausi pirmiau|Rodyti daugiau|{n} iš {all}|Filtrai|Pašalinti visus filtrus|Rodyti viską|Taip|Ne|Bandyti dar kartą|Ko ieškote?|Autorius",
  eo: "Ordigi laŭ|Rilateco|Plej novaj unue|Plej malnovaj unue|Montri pliajn|{n} el {all}|Filtriloj|Forigi ĉiujn filtrilojn|Montri ĉiujn|Jes|Ne|Provi denove|Kion vi serĉas?|Aŭtoro",
  el: "Ταξινόμηση κατά|Συνάφεια|Νεότερα πρώτα|Παλαιότερα πρώτα|Περισσότερα|{n} από {all}|Φίλτρα|Κατάργηση όλων των φίλτρων|Εμφάνιση όλων|Ναι|Όχι|Δοκιμάστε ξανά|Τι αναζητάτε;|Συντάκτης",
  ru: "Сортировать|По релевантности|Сначала новые|Сначала старые|Показать ещё|{n} из {all}|Фильтры|Сбросить все фильтры|Показать все|Да|Нет|Повторить|Что вы ищете?|Автор",
  sr: "Поређај по|Релевантност|Прво најновије|Прво најстарије|Учитај још|{n} од {all}|Филтери|Уклони све филтере|Прикажи све|Да|Не|Покушај поново|Шта тражите?|Аутор",
  ar: "الترتيب حسب|الصلة|الأحدث أولاً|الأقدم أولاً|عرض المزيد|{n} من {all}|عوامل التصفية|إزالة كل عوامل التصفية|عرض الكل|نعم|لا|إعادة المحاولة|عمّ تبحث؟|الكاتب",
  fa: "مرتب‌سازی بر اساس|ارتباط|جدیدترین‌ها|قدیمی‌ترین‌ها|نمایش بیشتر|{n} از {all}|فیلترها|حذف همهٔ فیلترها|نمایش همه|بله|خیر|تلاش دوباره|دنبال چه می‌گردید؟|نویسنده",
  hi: "क्रम|प्रासंगिकता|नवीनतम पहले|पुराने पहले|और दिखाएँ|{all} में से {n}|फ़िल्टर|सभी फ़िल्टर हटाएँ|सभी दिखाएँ|हाँ|नहीं|फिर कोशिश करें|आप क्या खोज रहे हैं?|लेखक",
  ne: "क्रम|सान्दर्भिकता|नयाँ पहिले|पुराना पहिले|थप देखाउनुहोस्|{all} मध्ये {n}|फिल्टर|सबै फिल्टर हटाउनुहोस्|सबै देखाउनुहोस्|हो|होइन|फेरि प्रयास गर्नुहोस्|के खोज्दै हुनुहुन्छ?|लेखक",
  hy: "Դասավորել ըստ|Համապատասխանության|Նախ նորերը|Նախ հները|Ցույց տալ ավելին|{n}՝ {all}-ից|Զտիչներ|Հեռացնել բոլոր զտիչները|Ցույց տալ բոլորը|Այո|Ոչ|Կրկին փորձել|Ի՞նչ եք փնտրում|Հեղինակ",
  ta: "வரிசைப்படுத்து|பொருத்தம்|புதியவை முதலில்|பழையவை முதலில்|மேலும் காட்டு|{all} இல் {n}|வடிகட்டிகள்|எல்லா வடிகட்டிகளையும் நீக்கு|அனைத்தையும் காட்டு|ஆம்|இல்லை|மீண்டும் முயலவும்|எதைத் தேடுகிறீர்கள்?|ஆசிரியர்",
  yi: "סאָרטירן לויט|שייכות|נײַסטע ערשט|עלטסטע ערשט|ווײַזן מער|{n} פֿון {all}|פֿילטערס|אַוועקנעמען אַלע פֿילטערס|ווײַזן אַלץ|יאָ|ניין|פּרוּווט נאָך אַ מאָל|וואָס זוכט איר?|מחבר",
  ja: "並べ替え|関連度順|新しい順|古い順|もっと見る|{all} 件中 {n} 件|絞り込み|絞り込みをすべて解除|すべて表示|はい|いいえ|再試行|何をお探しですか？|著者",
  zh: "排序方式|相关性|最新优先|最旧优先|加载更多|{n} / {all}|筛选|清除所有筛选|显示全部|是|否|重试|您想找什么？|作者",
  ko: "정렬|관련도순|최신순|오래된순|더 보기|{all}개 중 {n}개|필터|모든 필터 해제|모두 보기|예|아니요|다시 시도|무엇을 찾으시나요?|저자",
  th: "เรียงตาม|ความเกี่ยวข้อง|ใหม่สุดก่อน|เก่าสุดก่อน|แสดงเพิ่มเติม|{n} จาก {all}|ตัวกรอง|ล้างตัวกรองทั้งหมด|แสดงทั้งหมด|ใช่|ไม่ใช่|ลองอีกครั้ง|คุณกำลังค้นหาอะไร|ผู้เขียน",
  vi: "Sắp xếp theo|Mức độ liên quan|Mới nhất trước|Cũ nhất trước|Xem thêm|{n} trên {all}|Bộ lọc|Xóa mọi bộ lọc|Hiện tất cả|Có|Không|Thử lại|Bạn đang tìm gì?|Tác giả",
};

const STYLE = `
  .view { container-type: inline-size; color: var(--text); background: var(--ground); text-align: start; }
  dialog.all { inset: 0; translate: none; width: 100%; height: 100%; max-height: none; padding: 0; border: 0; border-radius: 0;
    overflow-y: auto; overscroll-behavior: contain; }
  dialog.all[open] { display: block; }
  dialog .view { max-width: 1100px; min-height: 100%; margin: 0 auto; padding: 0 16px 24px; }
  .view form { margin-bottom: 12px; }
  dialog .view form { position: sticky; top: 0; z-index: 2; padding: 12px 0 8px; margin-bottom: 4px; background: var(--ground); }
  .view form input { font-size: 18px; }
  .view button, select { min-height: 44px; padding: 8px 14px; max-width: 100%; cursor: pointer; }
  .view button:hover, select:hover { background: var(--chosen); }
  .view .wipe { min-height: 32px; padding: 0; }
  .view button[aria-disabled="true"] { opacity: .6; cursor: progress; }
  .view .quiet { border: 0; min-height: 32px; padding: 4px 0; color: var(--accent); text-decoration: underline; text-underline-offset: 3px; background: none; text-align: start; }
  .line { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 16px; margin-bottom: 8px; }
  .view .status { flex: 1 1 10em; padding: 0; font-size: 15px; }
  .view .status.alone { flex-basis: 100%; padding: 40px 24px 16px; font-size: 17px; }
  .line:has(> .alone) { justify-content: center; }
  .line:has(> .alone) ~ * .queries { justify-content: center; }
  .view .notice { padding: 10px 12px; margin-bottom: 12px; border: 1px solid var(--rule); border-radius: var(--radius); }
  .order { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 8px; font-size: 14px; color: var(--soft); }
  .facets { display: none; margin-bottom: 16px; }
  .facets.open { display: block; }
  fieldset { border: 0; margin: 0 0 20px; padding: 0; min-width: 0; }
  legend { padding: 0; margin-bottom: 4px; font-size: 14px; font-weight: 600; overflow-wrap: anywhere; }
  .value { display: flex; align-items: center; gap: 10px; min-height: 32px; padding: 2px 6px; margin-inline: -6px; font-size: 15px; border-radius: 6px; cursor: pointer; }
  .value:hover { background: var(--chosen); }
  .value input { flex: none; width: 18px; height: 18px; margin: 0; accent-color: var(--accent); }
  .value > :nth-child(2) { overflow-wrap: anywhere; min-width: 0; }
  .count { margin-inline-start: auto; font-size: 13px; color: var(--soft); font-variant-numeric: tabular-nums; }
  .hits { list-style: none; margin: 0; padding: 0; }
  .hits[aria-busy="true"] { opacity: .7; }
  .hits .hit { position: relative; padding: 10px 12px; }
  dialog .hits .hit { margin-inline: -12px; }
  .hits .hit + .hit { margin-top: 2px; }
  .hits .hit:not(:has(a)) { cursor: auto; }
  .to { display: block; color: inherit; text-decoration: none; }
  a.to::after { content: ""; position: absolute; inset: 0; }
  .hits .title { font-size: 17px; }
  .hit:hover > a.to .title { text-decoration: underline; text-underline-offset: 3px; text-decoration-thickness: 1px; }
  .view .answer { position: relative; margin: 0 0 12px; padding: 12px; }
  .view .answer .meta { padding: 0 0 6px; }
  .view .answer .to { margin-top: 6px; }
  .queries { display: flex; flex-wrap: wrap; align-items: center; gap: 8px; padding: 8px 0; border: 0; }
  .queries span { color: var(--soft); }
  .queries button { border-radius: 22px; }
  .sections { list-style: none; margin: 8px 0 0; padding: 0; border-inline-start: 2px solid var(--rule); }
  .sections .section { display: grid; margin: 0; padding: 4px 10px; color: inherit; text-decoration: none; border-radius: 6px; }
  .sections .section::before { content: none; }
  .sections .snippet { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden; }
  .hits .section .title { font-size: 15px; }
  .hits .section:hover .title { text-decoration: underline; text-underline-offset: 3px; }
  .hits .section > * { grid-column: 2; }
  .hits .section > .icon { grid-area: 1 / 1 / span 9; color: var(--soft); }
  .hits .section { position: relative; grid-template-columns: 16px minmax(0, 1fr); column-gap: 10px; }
  .load { display: block; margin: 16px auto; min-width: min(260px, 100%); font-weight: 600; color: var(--accent); }
  @container (max-width: 699px) {
    fieldset { display: flex; flex-wrap: wrap; gap: 8px; }
    legend { float: left; width: 100%; margin: 0; }
    .value { position: relative; min-height: 36px; padding: 4px 14px; margin: 0; gap: 8px; border: 1px solid var(--line); border-radius: 18px; }
    .value input { position: absolute; inset: 0; width: 100%; height: 100%; opacity: 0; cursor: pointer; }
    .value:has(:checked) { color: var(--accent); background: var(--chosen); border-color: var(--accent); box-shadow: inset 0 0 0 1px var(--accent); font-weight: 600; }
    .value:has(:focus-visible) { outline: 2px solid var(--accent); outline-offset: 1px; }
    .value :nth-child(2) { max-width: 100%; }
  }
  @container (min-width: 700px) {
    .columns:has(fieldset) { display: grid; grid-template-columns: 220px minmax(0, 1fr); gap: 0 40px; align-items: start; }
    .facets:has(fieldset) { display: block; padding-top: 8px; }
    .unfold { display: none; }
  }
  @media (forced-colors: active) { .hits .hit { border-top: 1px solid CanvasText; } .value:has(:checked) { outline: 3px solid Highlight; } }
`;

// --- The state, and the address that has it.

const isOurs = (name) => ["q", "page", "sort"].includes(name) || /^f\../.test(name);

function readAddress() {
  const parameters = new URLSearchParams(location.search);
  const refined = new Map();
  for (const [name, value] of parameters) {
    if (!/^f\../.test(name) || !value) continue;
    const field = name.slice(2);
    refined.set(field, (refined.get(field) || new Set()).add(value));
  }
  const page = Math.min(MOST_PAGES, Math.max(1, Number.parseInt(parameters.get("page"), 10) || 1));
  return { text: (parameters.get("q") || "").slice(0, 170).replace(/[\ud800-\udbff]$/, ""), page, sort: parameters.get("sort") || "", refined };
}

const hasView = () => new URLSearchParams(location.search).has("q");

/** The page's address with a state, or without any. */
function addressWith(state) {
  const address = new URL(location.href);
  for (const name of [...address.searchParams.keys()].filter(isOurs)) address.searchParams.delete(name);
  if (!state) return address.href;
  address.searchParams.set("q", state.text);
  if (state.page > 1) address.searchParams.set("page", state.page);
  if (state.sort) address.searchParams.set("sort", state.sort);
  for (const [field, values] of state.refined) for (const value of values) address.searchParams.append(`f.${field}`, value);
  return address.href;
}

// A page's own state of a history entry is kept beside ours: how many entries lie between here and the page without a view.
const pageState = () => (history.state !== null && typeof history.state === "object" ? history.state : {});
const depth = () => pageState().siteSearch?.depth || 0;

// --- The view. There is one at a time: the address has one state.

let current = null;

addEventListener("popstate", () => current?.follow());
addEventListener("pageshow", (event) => { if (event.persisted) current?.resume(); });

/** Shows the full view.
 *
 * @param core What the box and its view share; see above.
 * @param container The element to show it in; without one, a dialog covers the page.
 * @param query The text to search for; without one, what the page's address says.
 * @returns How to take it away again.
 */
export function showResults(core, { container = null, query } = {}) {
  if (current === null || current.core !== core || current.container !== container) {
    if (query === undefined && current !== null) return { unmount() {} }; // Another box of the page shows it.
    current?.unmount();
    current = makeView(core, container);
  }
  if (query === undefined) current.follow();
  else current.search(query);
  return current;
}

function makeView(core, container) {
  core.learn(NAMES, TEXTS);
  const { make, text, spoken, number, settings } = core;

  // The dialog lives in the box, whose variables and parts are its own, too.
  const host = container || core.element;
  const themed = host.dataset.theme;
  let root = rootOf(host);

  const said = (name, key, attributes = {}) => make(name, { ...core.marksOf(key), ...attributes }, text(key));
  const heading = said("h2", "results", { id: "heading", class: "told" });
  const isOwn = !container || !core.input; // One field is enough for a page.
  const input = !isOwn ? core.input : make("input", { type: "search", "aria-label": text("label"), placeholder: settings.placeholder || text("label"), maxlength: "170",
    autocomplete: "off", autocapitalize: "off", spellcheck: "false", enterkeyhint: "search", part: "input", ...core.marksOf("label") });
  const close = said("button", "close", { type: "button", class: "close" });
  const form = make("form", { role: "search", "aria-labelledby": "heading" }, ...(isOwn ? [core.field(input)] : []), ...(container ? [] : [close]));
  const status = make("p", { class: "status", role: "status", part: "status" });
  const notice = make("p", { class: "notice", role: "status", hidden: "" });
  const again = said("button", "again", { type: "button", hidden: "" });
  const clear = said("button", "clearFilters", { type: "button", class: "quiet", hidden: "" });
  const unfold = said("button", "filters", { type: "button", class: "unfold", "aria-expanded": "false", "aria-controls": "facets", hidden: "" });
  const order = make("select", { id: "order" });
  const ordering = make("div", { class: "order", hidden: "" }, said("label", "sort", { for: "order" }), order);
  const facets = make("div", { id: "facets", class: "facets", role: "group", "aria-label": text("filters"), ...core.marksOf("filters") });
  const quotation = make("div");
  const list = make("ol", { class: "hits", role: "list", "aria-labelledby": "heading" });
  const more = said("button", "loadMore", { type: "button", class: "load", part: "more", hidden: "" });
  const view = make("section", { class: "view", "aria-labelledby": "heading", ...(isOwn ? {} : { tabindex: "-1" }), ...core.own },
    heading, ...(isOwn ? [form] : []), notice, make("div", { class: "line" }, status, again, clear, unfold, ordering),
    make("div", { class: "columns" }, facets, make("div", {}, quotation, list, more)));
  const rest = isOwn ? input : view; // Where the focus goes from what is gone: into the box's field it would open the box.
  const dialog = container ? null : make("dialog", { part: "dialog", class: "all", "aria-labelledby": "heading", ...core.own }, view);
  let place = core.wrap(dialog ?? view);
  if (dialog) root.append(place);
  else root.replaceChildren(place);

  function rootOf(element) {
    const made = element.shadowRoot || element.attachShadow({ mode: "open" });
    core.dress(made, STYLE);
    if (settings.theme) element.dataset.theme = settings.theme;
    return made;
  }

  let state = readAddress();
  let fields = null; // What the site has, once it is known: names of facets, and whether there are dates.
  let latest = 0;
  let typing = 0;
  let running = null;
  let recorded = null; // The text that analytics know of.
  let total = 0;
  let shown = null; // The answer that is shown.
  let isEntered = false; // Whether the answer may lead elsewhere.
  let isReturning = performance.getEntriesByType("navigation")[0]?.type === "back_forward";
  let isWaiting = false;
  let isLeft = false;
  const boxes = new Map(); // The checkboxes, kept so that the one that has the focus does not lose it.
  const unfolded = new Set(); // Facets of which all values are shown.

  // --- The address

  const isOpen = () => container !== null || dialog.open;

  function write(isStep) {
    const address = addressWith(state);
    if (address === location.href) return;
    // What was opened by its own address has no page without a view before it.
    const steps = isStep ? (isOpen() ? depth() && depth() + 1 : 1) : depth();
    history[isStep ? "pushState" : "replaceState"]({ ...pageState(), siteSearch: { depth: steps } }, "", address);
  }

  function open() {
    isLeft = false;
    if (isOpen()) return;
    if (!dialog.isConnected || !isShown(root.host)) {
      // The box is folded away, such as in a menu, and nothing in it could be seen.
      root = rootOf(document.body.appendChild(make("div")));
      root.append(place);
    }
    core.showAbove(dialog);
  }

  const isShown = (element) => (element.checkVisibility ? element.checkVisibility() : element.getClientRects().length > 0);

  function leave() {
    if (dialog.open || isLeft || !hasView()) return; // It was opened again, or closed because the address changed.
    if (depth()) history.go(-depth());
    else history.replaceState(pageState(), "", addressWith(null));
  }

  function follow() {
    state = readAddress();
    if (!container && !hasView()) {
      dialog.close();
      return;
    }
    open();
    fill();
    run();
  }

  function fill() {
    if (!isOwn && running === null && input.value) return; // It was typed while the view was loaded.
    if (input.value.trim() !== state.text) input.value = state.text;
    turn();
  }

  /** Takes a choice of the visitor: an entry of the history, from the first page on. */
  function choose(changes) {
    state = { ...state, page: 1, ...changes };
    write(true);
    run();
  }

  // --- Searching

  const offered = () => ["", ...(settings.sort || (fields?.hasDates ? DATES : []))];

  /** Asks once what the site's documents have. An engine that is reached directly does not tell. */
  async function learnFields() {
    if (fields === null) {
      const { facets: seen, canRefine } = await core.ask("", { limit: 0, facets: ["*"], isRecorded: false });
      const useful = Object.keys(seen).filter((name) => isUseful(name, seen[name])).slice(0, MOST_FACETS);
      fields = {
        names: settings.facets ? settings.facets.filter((name) => name in seen) : useful,
        hasDates: canRefine && Object.keys(seen.date || {}).length > 0,
      };
    }
    return fields;
  }

  async function find(offset, limit) {
    const { signal } = running;
    const { names } = await learnFields();
    const query = state.text;
    const refined = [...state.refined].filter(([field]) => names.includes(field)).map(([field, values]) => [field, [...values]]);
    const sort = state.sort && offered().includes(state.sort) ? [state.sort] : [];
    const isRecorded = query !== recorded;
    const main = core.ask(query, { offset, limit, sort, filters: Object.fromEntries(refined), facets: offset ? [] : names, isRecorded, signal });
    // Values of one field are alternatives: each is counted as if none of its field were chosen.
    const counts = offset ? [] : refined.map(([field]) => {
      const others = refined.filter(([other]) => other !== field);
      return core.ask(query, { limit: 0, filters: Object.fromEntries(others), facets: [field], isRecorded: false, signal });
    });
    const [answer, ...counted] = await Promise.all([main, ...counts]);
    if (isRecorded && query) core.log(answer);
    recorded = query;
    return { ...answer, facets: Object.assign({}, answer.facets, ...counted.map((one) => one.facets)) };
  }

  async function run() {
    clearTimeout(typing);
    const turn = ++latest;
    running?.abort();
    if (!state.text && !state.refined.size) {
      settle(0, turn);
      show({ total: 0, hits: [], facets: {} });
      say("start");
      offer(turn);
      return;
    }
    running = new AbortController();
    const slow = wait();
    try {
      const wanted = state.page * PAGE;
      const answer = await find(0, Math.min(wanted, AT_ONCE));
      for (let offset = AT_ONCE; turn === latest && offset < Math.min(wanted, answer.total); offset += AT_ONCE) {
        const { hits } = await find(offset, Math.min(AT_ONCE, wanted - offset));
        answer.hits.push(...hits);
      }
      if (turn !== latest) return;
      if (isEntered && core.follow(answer, state.text)) return;
      show(answer);
      if (!answer.total) offer(turn);
      core.emit("search", { query: state.text, total: answer.total, hits: answer.hits });
    } catch (error) {
      if (turn === latest) fail(error, false);
    } finally {
      settle(slow, turn);
      if (turn === latest) isEntered = false;
    }
  }

  // Where nothing was typed or found, there is something else.
  async function offer(turn) {
    const queries = (await core.popular()).filter((query) => query !== state.text);
    if (turn !== latest || !queries.length) return;
    list.append(make("li", { class: "queries" }, said("span", "popular"), ...queries.map((query) => {
      const button = make("button", { type: "button", ...core.page }, query);
      button.addEventListener("click", () => {
        rest.focus();
        search(query);
      });
      return button;
    })));
  }

  async function loadMore() {
    if (isWaiting) return;
    const turn = ++latest;
    running = new AbortController();
    const slow = wait();
    try {
      const answer = await find(state.page * PAGE, PAGE);
      if (turn !== latest) return;
      const from = list.children.length;
      state.page += 1;
      write(false);
      append(answer);
      const isFocused = root.activeElement === more;
      more.hidden = !hasMore();
      if (isFocused && more.hidden) focusHit(from);
      tellCount();
    } catch (error) {
      if (turn === latest) fail(error, true);
    } finally {
      settle(slow, turn);
    }
  }

  const hasMore = () => state.page * PAGE < total && state.page < MOST_PAGES;

  function wait() {
    isWaiting = true;
    list.setAttribute("aria-busy", "true");
    more.setAttribute("aria-disabled", "true");
    return setTimeout(() => say("wait"), SLOW_MS);
  }

  function settle(slow, turn) {
    clearTimeout(slow);
    if (turn !== latest) return;
    isWaiting = false;
    list.removeAttribute("aria-busy");
    more.removeAttribute("aria-disabled");
  }

  // --- What is shown

  function say(key, values, picture) {
    status.replaceChildren(...(picture ? [core.icon(picture)] : []), ...spoken(key, values));
    status.classList.toggle("alone", Boolean(picture));
    again.hidden = true;
  }

  function fail(error, isKept) {
    if (!error.reason) console.error(error);
    const reason = error.reason || "away";
    if (!isKept) {
      quotation.replaceChildren();
      list.replaceChildren();
      notice.hidden = more.hidden = true;
    }
    say(reason, {}, isKept ? "" : "problem");
    again.hidden = false;
    core.emit("error", { reason });
  }

  function tellCount() {
    if (!total) {
      say("none", { q: state.text }, "none");
      return;
    }
    status.replaceChildren(...core.counted(shown));
    status.classList.remove("alone");
    again.hidden = true;
    const length = Math.min(total, state.page * PAGE);
    more.replaceChildren(...spoken("loadMore"), " (", ...spoken("shown", { n: number(length), all: number(total) }), ")");
  }

  function show(answer) {
    const focused = root.activeElement;
    shown = answer;
    ({ total } = answer);
    const told = core.notice(answer);
    notice.replaceChildren(...told);
    notice.hidden = !told.length;
    quotation.replaceChildren(...core.answer(answer).map(quote));
    list.replaceChildren();
    append(answer);
    if (!total) list.append(...core.links(answer).map((link) => make("li", {}, link)));
    more.hidden = !hasMore();
    showFacets(answer.facets);
    showOrder();
    clear.hidden = !state.refined.size;
    tellCount();
    // What had the focus is in its place again, or is gone: then the text has it.
    if (focused && focused !== root.activeElement) (focused.isConnected && !focused.hidden ? focused : rest).focus({ preventScroll: true });
    if (isReturning) focusHit(pageState().siteSearch?.hit);
    isReturning = false;
  }

  function focusHit(position) {
    const link = (position === QUOTED ? quotation : list.children[position])?.querySelector("a");
    link?.focus();
    link?.scrollIntoView({ block: "nearest" });
  }

  // Who comes back from where a link leads finds the focus on it.
  function follows(link, position) {
    link.classList.remove("hit"); // The row is one.
    link.addEventListener("click", (event) => {
      history.replaceState({ ...pageState(), siteSearch: { depth: depth(), hit: position } }, "");
      if (!event.defaultPrevented || !dialog) return;
      isLeft = true; // The page goes there in its own way; the address is its concern.
      dialog.close();
    });
  }

  // As in a row, the title alone is the link, and covers the rest.
  function quote(figure) {
    const link = figure.lastChild;
    link.className = "to";
    link.before(link.firstChild);
    figure.classList.add("hit");
    follows(link, QUOTED);
    return figure;
  }

  function append(answer) {
    for (const hit of answer.hits) {
      const position = list.children.length;
      const link = core.hit(hit, position + 1, answer);
      // The title alone is the link, and covers the rest: a list of links is read by titles. What the page makes of a
      // hit is left as it is.
      const parts = [...link.children];
      const title = parts.find((part) => part.className === "title");
      link.className = "to";
      link.removeAttribute("part");
      if (title) link.replaceChildren(title);
      const others = title ? parts.filter((part) => part !== title) : [];
      const isIcon = others[0]?.localName === "svg";
      const row = make("li", { class: "hit", part: "hit" }, ...others.splice(0, isIcon ? 1 : 0), link, ...others);
      const sections = core.sections(hit, position + 1, answer);
      if (sections.length) row.append(make("ul", { class: "sections", role: "list" }, ...sections.map((each) => make("li", {}, each))));
      for (const each of [link, ...sections]) follows(each, position);
      list.append(row);
    }
  }

  function showOrder() {
    const choices = offered();
    ordering.hidden = choices.length < 2 || !total;
    if (order.length !== choices.length) order.replaceChildren(...choices.map((value) => make("option", { value }, nameOfOrder(value))));
    order.value = choices.includes(state.sort) ? state.sort : "";
  }

  function nameOfOrder(value) {
    if (!value) return text("relevance");
    const [field, direction] = value.split(":");
    if (DATES.includes(value)) return given(`sort.${value}`) ?? text(direction === "desc" ? "newest" : "oldest");
    return given(`sort.${value}`) ?? `${nameOfField(field)} ${direction === "desc" ? "↓" : "↑"}`;
  }

  const given = (key) => (Object.hasOwn(settings.texts, key) ? String(settings.texts[key]) : undefined);

  function nameOfField(field) {
    const words = field.replace(/[_-]+/g, " ").trim();
    return given(`facet.${field}`) ?? (field === "author" ? text("author") : words.charAt(0).toLocaleUpperCase() + words.slice(1));
  }

  function showFacets(counted) {
    const names = (fields?.names || []).filter((field) => Object.keys(counted[field] || {}).length || state.refined.has(field));
    facets.replaceChildren(...names.map((field) => group(field, counted[field] || {}, counted)));
    unfold.hidden = !names.length;
    const chosen = names.reduce((sum, field) => sum + (state.refined.get(field)?.size || 0), 0);
    unfold.textContent = text("filters") + (chosen ? ` (${number(chosen)})` : "");
  }

  function group(field, counts, counted) {
    const chosen = state.refined.get(field) || new Set();
    const values = [...new Set([...Object.keys(counts), ...chosen])];
    const visible = unfolded.has(field) ? values : values.filter((value, at) => at < FIRST_VALUES || chosen.has(value));
    const isFlag = values.every((value) => value === "true" || value === "false");
    const made = make("fieldset", { part: "facet" }, make("legend", {}, nameOfField(field)), ...visible.map((value) =>
      make("label", { class: "value" }, boxOf(field, value, chosen.has(value)),
        isFlag ? said("span", value === "true" ? "yes" : "no") : make("bdi", core.page, value),
        make("span", { class: "count" }, number(counts[value] || 0)))));
    if (visible.length < values.length) {
      const all = said("button", "showAll", { type: "button", class: "quiet", "aria-label": `${text("showAll")}: ${nameOfField(field)}` });
      all.addEventListener("click", () => {
        unfolded.add(field);
        showFacets(counted);
        boxOf(field, values.find((value) => !visible.includes(value)), false).focus();
      });
      made.append(all);
    }
    return made;
  }

  function boxOf(field, value, isChosen) {
    const key = JSON.stringify([field, value]);
    if (!boxes.has(key)) {
      const box = make("input", { type: "checkbox" });
      box.addEventListener("change", () => {
        const values = new Set(state.refined.get(field));
        if (box.checked) values.add(value);
        else values.delete(value);
        choose({ refined: new Map([...state.refined, [field, values]].filter(([, each]) => each.size)) });
      });
      boxes.set(key, box);
    }
    boxes.get(key).checked = isChosen;
    return boxes.get(key);
  }

  // --- What the visitor does

  const turn = () => { input.dir = input.value ? "auto" : core.own.dir; };

  function take() {
    clearTimeout(typing);
    const words = input.value.trim();
    if (words === state.text && !isWaiting && again.hidden) return;
    state = { ...state, text: words, page: 1 };
    write(false);
    run();
  }

  if (isOwn) input.addEventListener("input", () => {
    turn();
    clearTimeout(typing);
    typing = setTimeout(take, input.value.trim() ? TYPING_MS : 0);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    isEntered = true;
    take();
    if (isWaiting || (shown && core.follow(shown, state.text))) return;
    isEntered = false;
  });
  order.addEventListener("change", () => choose({ sort: order.value }));
  clear.addEventListener("click", () => {
    choose({ refined: new Map() });
    rest.focus();
  });
  more.addEventListener("click", loadMore);
  again.addEventListener("click", () => {
    rest.focus();
    run();
  });
  unfold.addEventListener("click", () => {
    unfold.setAttribute("aria-expanded", String(facets.classList.toggle("open")));
  });
  close.addEventListener("click", () => dialog.close());
  dialog?.addEventListener("close", leave);
  view.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && dialog && !event.isComposing && event.keyCode !== 229) {
      event.preventDefault(); // It would only empty the text.
      event.stopPropagation();
      dialog.close();
    }
    // Of what is typed here the page sees no target that is a field, and might take it for its shortcuts.
    if (event.key?.length === 1 && (dialog || !(event.ctrlKey || event.metaKey))) event.stopPropagation();
  });

  function search(query) {
    core.remember(query);
    state = { text: query.trim(), page: 1, sort: "", refined: new Map() };
    write(true);
    fill();
    open();
    if (container) host.scrollIntoView({ block: "nearest" });
    if (isOwn) input.focus({ preventScroll: true });
    run();
  }

  function unmount() {
    isLeft = true;
    latest += 1;
    clearTimeout(typing);
    running?.abort();
    if (current === shownView) current = null;
    if (dialog) {
      dialog.close();
      place.remove();
      if (root.host !== host) root.host.remove();
      return;
    }
    if (themed === undefined) delete host.dataset.theme;
    else host.dataset.theme = themed;
    root.replaceChildren(make("slot"));
  }

  const shownView = { core, container, follow, search, unmount, resume: () => { if (isWaiting) run(); } };
  return shownView;
}

/** Whether a field sorts documents into groups: its values are short, and most of them are those of several documents. */
function isUseful(name, counts) {
  const values = Object.keys(counts);
  const documents = Object.values(counts).reduce((sum, count) => sum + count, 0);
  return !NO_FACETS.has(name) && values.length > 1 && documents >= 2 * values.length && values.every((value) => value.length <= LONGEST_VALUE);
}
