/* The full view of the search box: facets, sorting, and "load more". widget.js loads it on first use.
 *
 * Its state is in the page's URL: q, page, sort, and f.<field> for each selected value. All other parameters of the URL
 * belong to the page and are kept. Responses of the engine are shown as text, never as HTML.
 *
 * widget.js passes `core`:
 *
 *   element                            the element that dispatches events
 *   input                              the box's field, if the page shows it beside the view, which then has no field
 *   settings                           the settings of the box (see `settingsOf`)
 *   addTexts(names, table)             adds texts: "more less", { en: "More|Less", … }; `texts` of the page takes precedence
 *   text(key, values)                  returns a text in the box's language, with {name} replaced
 *   textNodes(key, values)             returns the same as nodes, with lang and dir if they differ from the box's
 *   langOf(key)                        returns the attributes lang and dir of a text
 *   boxLang, pageLang                  the attributes lang and dir of the box's texts, and of results
 *   summary(response)                  returns nodes with the number of results and the corrected query, if any
 *   notice(response), links(response)  return nodes with the owner's notice, and links for searches without results
 *   findPopular()                      resolves to the most frequent queries
 *   redirect(response, query)          opens the URL to which the owner redirects the query; returns whether there is one
 *   formatNumber(n)                    returns a number as written in the box's language
 *   make(name, attributes, …children)  creates an element
 *   icon(name)                         creates an icon, such as "none" or "problem"
 *   makeField(input)                   wraps a field with its icon and its clear button
 *   applyStyles(root, css)             adds the box's style sheet, and more CSS, to a shadow root
 *   wrap(…children)                    wraps the content of a shadow root, so that it doesn't inherit the page's styles
 *   openDialog(dialog)                 opens a dialog; the page behind it can't scroll
 *   search(query, {offset, limit, sort, facets, filters, isRecorded, signal})
 *                                      → {query, queryId, total, hits, facets, canRefine, missing, …}; throws a SearchError,
 *                                      whose `reason` is a key of the texts. `filters` is
 *                                      {field: [values]}, `sort` is ["f:asc"], `facets` are names of fields; in the
 *                                      response they are {field: {value: count}}. Filters, sorting, and facets are
 *                                      ignored if `canRefine` is false, as with engines that the box reaches directly.
 *                                      `isRecorded` is false for searches that analytics already contain.
 *                                      `missing` is the page's context if only searching without it has results
 *   makeHit(hit, position, {query, queryId})
 *                                      makes the link (or text) of a hit, with `position` from 1; selecting it reports
 *                                      the click
 *   makeSections(hit, position, {query, queryId})
 *                                      makes the links of the hit's sections in the same way
 *   makeAnswer({answer, hits, …})      makes a figure with the quoted answer and, as its last child, a link; [] if there
 *                                      is no answer
 *   remember(query)                    stores a recent search, if the page turns that on
 *   log(response)                      reports a query to analytics, unless the gateway has logged it; call it once a query
 *   emit(type, detail)                 dispatches an event of the box: "search" or "error"
 */

const PAGE_SIZE = 20; // Results that "load more" adds.
const MAX_PAGES = 50;
const MAX_HITS_PER_REQUEST = 100; // The service's limit.
const TYPING_PAUSE_MS = 150; // Between the last keystroke and the search.
const WAIT_MESSAGE_DELAY_MS = 400; // Before "Searching…" appears.
const MAX_FACETS = 8;
const COLLAPSED_VALUES = 8; // Values of a facet that are visible before "Show all".
const MAX_VALUE_CHARS = 80; // Longer values are not names of groups.
const ANSWER_POSITION = "answer"; // Used instead of a hit's position, for the answer above the hits.
const DATE_SORTS = ["date:desc", "date:asc"];
const UNFACETED_FIELDS = new Set(["id", "date"]);

const TEXT_NAMES = "sort relevance newest oldest loadMore shown filters clearFilters showAll yes no again start author";
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

// --- The state, and the URL that contains it

const isViewParameter = (name) => ["q", "page", "sort"].includes(name) || /^f\../.test(name);

function readUrl() {
  const parameters = new URLSearchParams(location.search);
  const filters = new Map();
  for (const [name, value] of parameters) {
    if (!/^f\../.test(name) || !value) continue;
    const field = name.slice(2);
    filters.set(field, (filters.get(field) || new Set()).add(value));
  }
  const page = Math.min(MAX_PAGES, Math.max(1, Number.parseInt(parameters.get("page"), 10) || 1));
  return { text: (parameters.get("q") || "").slice(0, 170).replace(/[\ud800-\udbff]$/, ""), page, sort: parameters.get("sort") || "", filters };
}

const hasView = () => new URLSearchParams(location.search).has("q");

/** Returns the page's URL with the parameters of a state, or without parameters if `state` is null. */
function urlWith(state) {
  const url = new URL(location.href);
  for (const name of [...url.searchParams.keys()].filter(isViewParameter)) url.searchParams.delete(name);
  if (!state) return url.href;
  url.searchParams.set("q", state.text);
  if (state.page > 1) url.searchParams.set("page", state.page);
  if (state.sort) url.searchParams.set("sort", state.sort);
  for (const [field, values] of state.filters) for (const value of values) url.searchParams.append(`f.${field}`, value);
  return url.href;
}

// The view's part of a history entry is beside the page's own state. `depth` is the number of entries back to the page without a view.
const pageState = () => (history.state !== null && typeof history.state === "object" ? history.state : {});
const depth = () => pageState().siteSearch?.depth || 0;

// --- The view. A page shows one at a time, since its URL contains one state.

let current = null;

addEventListener("popstate", () => current?.follow());
addEventListener("pageshow", (event) => { if (event.persisted) current?.resume(); });

/** Shows the full view.
 *
 * @param core The box's functions and settings; see above.
 * @param container The element to show it in; without one, a dialog covers the page.
 * @param query The text to search for; without one, the query in the page's URL.
 * @returns An object whose `unmount()` removes the view.
 */
export function showResults(core, { container = null, query } = {}) {
  if (current === null || current.core !== core || current.container !== container) {
    if (query === undefined && current !== null) return { unmount() {} }; // Another box of the page shows the view.
    current?.unmount();
    current = makeView(core, container);
  }
  if (query === undefined) current.follow();
  else current.search(query);
  return current;
}

function makeView(core, container) {
  core.addTexts(TEXT_NAMES, TEXTS);
  const { make, text, textNodes, formatNumber, settings } = core;

  // The dialog is inside the box's shadow root, so that the box's CSS variables and parts apply to it.
  const host = container || core.element;
  const themed = host.dataset.theme;
  let root = rootOf(host);

  const makeText = (name, key, attributes = {}) => make(name, { ...core.langOf(key), ...attributes }, text(key));
  const heading = makeText("h2", "results", { id: "heading", class: "live" });
  const hasField = !container || !core.input; // If the page shows the box, the view needs no second field.
  const input = !hasField ? core.input : make("input", { type: "search", "aria-label": text("label"), placeholder: settings.placeholder || text("label"), maxlength: "170",
    autocomplete: "off", autocapitalize: "off", spellcheck: "false", enterkeyhint: "search", part: "input", ...core.langOf("label") });
  const close = makeText("button", "close", { type: "button", class: "close" });
  const form = make("form", { role: "search", "aria-labelledby": "heading" }, ...(hasField ? [core.makeField(input)] : []), ...(container ? [] : [close]));
  const status = make("p", { class: "status", role: "status", part: "status" });
  const notice = make("p", { class: "notice", role: "status", hidden: "" });
  const retry = makeText("button", "again", { type: "button", hidden: "" });
  const clearFilters = makeText("button", "clearFilters", { type: "button", class: "quiet", hidden: "" });
  const showFilters = makeText("button", "filters", { type: "button", class: "unfold", "aria-expanded": "false", "aria-controls": "facets", hidden: "" });
  const sortSelect = make("select", { id: "order" });
  const sortControl = make("div", { class: "order", hidden: "" }, makeText("label", "sort", { for: "order" }), sortSelect);
  const facets = make("div", { id: "facets", class: "facets", role: "group", "aria-label": text("filters"), ...core.langOf("filters") });
  const answerBox = make("div");
  const list = make("ol", { class: "hits", role: "list", "aria-labelledby": "heading" });
  const loadMoreButton = makeText("button", "loadMore", { type: "button", class: "load", part: "more", hidden: "" });
  const view = make("section", { class: "view", "aria-labelledby": "heading", ...(hasField ? {} : { tabindex: "-1" }), ...core.boxLang },
    heading, ...(hasField ? [form] : []), notice, make("div", { class: "line" }, status, retry, clearFilters, showFilters, sortControl),
    make("div", { class: "columns" }, facets, make("div", {}, answerBox, list, loadMoreButton)));
  const focusTarget = hasField ? input : view; // Gets the focus of removed elements. The box's field would open its panel.
  const dialog = container ? null : make("dialog", { part: "dialog", class: "all", "aria-labelledby": "heading", ...core.boxLang }, view);
  let wrapper = core.wrap(dialog ?? view);
  if (dialog) root.append(wrapper);
  else root.replaceChildren(wrapper);

  function rootOf(element) {
    const shadow = element.shadowRoot || element.attachShadow({ mode: "open" });
    core.applyStyles(shadow, STYLE);
    if (settings.theme) element.dataset.theme = settings.theme;
    return shadow;
  }

  let state = readUrl();
  let fields = null; // Names of facets and whether documents have dates, once loaded.
  let latestRequest = 0;
  let typingTimer = 0;
  let controller = null;
  let recordedQuery = null; // The last query that analytics contain.
  let total = 0;
  let shownResponse = null; // The response that is shown.
  let mayRedirect = false; // Whether the visitor pressed Enter, so that the response may redirect.
  let isReturning = performance.getEntriesByType("navigation")[0]?.type === "back_forward";
  let isWaiting = false;
  let leavesPage = false;
  const checkboxes = new Map(); // Checkboxes are reused, so that the focused one keeps the focus.
  const expandedFacets = new Set(); // Facets that show all their values.

  // --- The URL

  const isOpen = () => container !== null || dialog.open;

  function updateUrl(addsEntry) {
    const url = urlWith(state);
    if (url === location.href) return;
    // A view that was opened by its URL has no page without a view before it.
    const steps = addsEntry ? (isOpen() ? depth() && depth() + 1 : 1) : depth();
    history[addsEntry ? "pushState" : "replaceState"]({ ...pageState(), siteSearch: { depth: steps } }, "", url);
  }

  function open() {
    leavesPage = false;
    if (isOpen()) return;
    if (!dialog.isConnected || !isVisible(root.host)) {
      // The box is hidden, for example in a closed menu, and would hide the dialog, too.
      root = rootOf(document.body.appendChild(make("div")));
      root.append(wrapper);
    }
    core.openDialog(dialog);
  }

  const isVisible = (element) => (element.checkVisibility ? element.checkVisibility() : element.getClientRects().length > 0);

  function removeFromUrl() {
    if (dialog.open || leavesPage || !hasView()) return; // It was opened again, or closed because the URL changed.
    if (depth()) history.go(-depth());
    else history.replaceState(pageState(), "", urlWith(null));
  }

  function follow() {
    state = readUrl();
    if (!container && !hasView()) {
      dialog.close();
      return;
    }
    open();
    fillField();
    run();
  }

  function fillField() {
    if (!hasField && controller === null && input.value) return; // The visitor typed while the view was loading.
    if (input.value.trim() !== state.text) input.value = state.text;
    setDirection();
  }

  /** Changes the state, returns to the first page, and adds a history entry. */
  function changeState(changes) {
    state = { ...state, page: 1, ...changes };
    updateUrl(true);
    run();
  }

  // --- Searching

  const sortChoices = () => ["", ...(settings.sort || (fields?.hasDates ? DATE_SORTS : []))];

  /** Loads the names of facets once. Engines that the box reaches directly don't return any. */
  async function learnFields() {
    if (fields === null) {
      const { facets: counts, canRefine } = await core.search("", { limit: 0, facets: ["*"], isRecorded: false });
      const usefulFacets = Object.keys(counts).filter((name) => isUseful(name, counts[name])).slice(0, MAX_FACETS);
      fields = {
        names: settings.facets ? settings.facets.filter((name) => name in counts) : usefulFacets,
        hasDates: canRefine && Object.keys(counts.date || {}).length > 0,
      };
    }
    return fields;
  }

  async function searchHits(offset, limit) {
    const { signal } = controller;
    const { names } = await learnFields();
    const query = state.text;
    const filters = [...state.filters].filter(([field]) => names.includes(field)).map(([field, values]) => [field, [...values]]);
    const sort = state.sort && sortChoices().includes(state.sort) ? [state.sort] : [];
    const isRecorded = query !== recordedQuery;
    const main = core.search(query, { offset, limit, sort, filters: Object.fromEntries(filters), facets: offset ? [] : names, isRecorded, signal });
    // The values of a field are alternatives, so they are counted without the filter of their own field.
    const counts = offset ? [] : filters.map(([field]) => {
      const otherFilters = filters.filter(([other]) => other !== field);
      return core.search(query, { limit: 0, filters: Object.fromEntries(otherFilters), facets: [field], isRecorded: false, signal });
    });
    const [response, ...countResponses] = await Promise.all([main, ...counts]);
    if (isRecorded && query) core.log(response);
    recordedQuery = query;
    return { ...response, facets: Object.assign({}, response.facets, ...countResponses.map((countResponse) => countResponse.facets)) };
  }

  async function run() {
    clearTimeout(typingTimer);
    const number = ++latestRequest;
    controller?.abort();
    if (!state.text && !state.filters.size) {
      finish(0, number);
      showResponse({ total: 0, hits: [], facets: {} });
      showMessage("start");
      showPopular(number);
      return;
    }
    controller = new AbortController();
    const waitTimer = wait();
    try {
      const maxHits = state.page * PAGE_SIZE;
      const response = await searchHits(0, Math.min(maxHits, MAX_HITS_PER_REQUEST));
      for (let offset = MAX_HITS_PER_REQUEST; number === latestRequest && offset < Math.min(maxHits, response.total); offset += MAX_HITS_PER_REQUEST) {
        const { hits } = await searchHits(offset, Math.min(MAX_HITS_PER_REQUEST, maxHits - offset));
        response.hits.push(...hits);
      }
      if (number !== latestRequest) return;
      if (mayRedirect && core.redirect(response, state.text)) return;
      showResponse(response);
      if (!response.total) showPopular(number);
      core.emit("search", { query: state.text, total: response.total, hits: response.hits });
    } catch (error) {
      if (number === latestRequest) fail(error, false);
    } finally {
      finish(waitTimer, number);
      if (number === latestRequest) mayRedirect = false;
    }
  }

  // Without a query or results, shows popular queries.
  async function showPopular(number) {
    const queries = (await core.findPopular()).filter((query) => query !== state.text);
    if (number !== latestRequest || !queries.length) return;
    list.append(make("li", { class: "queries" }, makeText("span", "popular"), ...queries.map((query) => {
      const button = make("button", { type: "button", ...core.pageLang }, query);
      button.addEventListener("click", () => {
        focusTarget.focus();
        search(query);
      });
      return button;
    })));
  }

  async function loadMore() {
    if (isWaiting) return;
    const number = ++latestRequest;
    controller = new AbortController();
    const waitTimer = wait();
    try {
      const response = await searchHits(state.page * PAGE_SIZE, PAGE_SIZE);
      if (number !== latestRequest) return;
      const firstNew = list.children.length;
      state.page += 1;
      updateUrl(false);
      appendHits(response);
      const isFocused = root.activeElement === loadMoreButton;
      loadMoreButton.hidden = !hasMore();
      if (isFocused && loadMoreButton.hidden) focusHit(firstNew);
      showCount();
    } catch (error) {
      if (number === latestRequest) fail(error, true);
    } finally {
      finish(waitTimer, number);
    }
  }

  const hasMore = () => state.page * PAGE_SIZE < total && state.page < MAX_PAGES;

  function wait() {
    isWaiting = true;
    list.setAttribute("aria-busy", "true");
    loadMoreButton.setAttribute("aria-disabled", "true");
    return setTimeout(() => showMessage("wait"), WAIT_MESSAGE_DELAY_MS);
  }

  function finish(waitTimer, number) {
    clearTimeout(waitTimer);
    if (number !== latestRequest) return;
    isWaiting = false;
    list.removeAttribute("aria-busy");
    loadMoreButton.removeAttribute("aria-disabled");
  }

  // --- Content of the view

  function showMessage(key, values, picture) {
    status.replaceChildren(...(picture ? [core.icon(picture)] : []), ...textNodes(key, values));
    status.classList.toggle("alone", Boolean(picture));
    retry.hidden = true;
  }

  function fail(error, keepsHits) {
    if (!error.reason) console.error(error);
    const reason = error.reason || "away";
    if (!keepsHits) {
      answerBox.replaceChildren();
      list.replaceChildren();
      notice.hidden = loadMoreButton.hidden = true;
    }
    showMessage(reason, {}, keepsHits ? "" : "problem");
    retry.hidden = false;
    core.emit("error", { reason });
  }

  function showCount() {
    if (!total) {
      showMessage("none", { q: state.text }, "none");
      return;
    }
    status.replaceChildren(...core.summary(shownResponse));
    status.classList.remove("alone");
    retry.hidden = true;
    const length = Math.min(total, state.page * PAGE_SIZE);
    loadMoreButton.replaceChildren(...textNodes("loadMore"), " (", ...textNodes("shown", { n: formatNumber(length), all: formatNumber(total) }), ")");
  }

  function showResponse(response) {
    const focused = root.activeElement;
    shownResponse = response;
    ({ total } = response);
    const notices = core.notice(response);
    notice.replaceChildren(...notices);
    notice.hidden = !notices.length;
    answerBox.replaceChildren(...core.makeAnswer(response).map(arrangeAnswer));
    list.replaceChildren();
    appendHits(response);
    if (!total) list.append(...core.links(response).map((link) => make("li", {}, link)));
    loadMoreButton.hidden = !hasMore();
    showFacets(response.facets);
    showSorts();
    clearFilters.hidden = !state.filters.size;
    showCount();
    // Restore the focus, which moves to the field (or the view) if the focused element was removed.
    if (focused && focused !== root.activeElement) (focused.isConnected && !focused.hidden ? focused : focusTarget).focus({ preventScroll: true });
    if (isReturning) focusHit(pageState().siteSearch?.hit);
    isReturning = false;
  }

  function focusHit(position) {
    const link = (position === ANSWER_POSITION ? answerBox : list.children[position])?.querySelector("a");
    link?.focus();
    link?.scrollIntoView({ block: "nearest" });
  }

  // Stores which link was followed, so that it has the focus when the visitor comes back.
  function rememberFocus(link, position) {
    link.classList.remove("hit"); // The row has this class.
    link.addEventListener("click", (event) => {
      history.replaceState({ ...pageState(), siteSearch: { depth: depth(), hit: position } }, "");
      if (!event.defaultPrevented || !dialog) return;
      leavesPage = true; // The page handles the click and changes the URL itself.
      dialog.close();
    });
  }

  // As in a hit's row, only the title is the link, but it is clickable in the whole area.
  function arrangeAnswer(figure) {
    const link = figure.lastChild;
    link.className = "to";
    link.before(link.firstChild);
    figure.classList.add("hit");
    rememberFocus(link, ANSWER_POSITION);
    return figure;
  }

  function appendHits(response) {
    for (const hit of response.hits) {
      const position = list.children.length;
      const link = core.makeHit(hit, position + 1, response);
      // Only the title is the link, so that screen readers list links by title; a click anywhere in the row follows it.
      // Custom markup of a hit is not rearranged.
      const parts = [...link.children];
      const title = parts.find((part) => part.className === "title");
      link.className = "to";
      link.removeAttribute("part");
      if (title) link.replaceChildren(title);
      const details = title ? parts.filter((part) => part !== title) : [];
      const isIcon = details[0]?.localName === "svg";
      const row = make("li", { class: "hit", part: "hit" }, ...details.splice(0, isIcon ? 1 : 0), link, ...details);
      const sections = core.makeSections(hit, position + 1, response);
      if (sections.length) row.append(make("ul", { class: "sections", role: "list" }, ...sections.map((section) => make("li", {}, section))));
      for (const followed of [link, ...sections]) rememberFocus(followed, position);
      list.append(row);
    }
  }

  function showSorts() {
    const choices = sortChoices();
    sortControl.hidden = choices.length < 2 || !total;
    if (sortSelect.length !== choices.length) sortSelect.replaceChildren(...choices.map((value) => make("option", { value }, sortName(value))));
    sortSelect.value = choices.includes(state.sort) ? state.sort : "";
  }

  function sortName(value) {
    if (!value) return text("relevance");
    const [field, direction] = value.split(":");
    if (DATE_SORTS.includes(value)) return customText(`sort.${value}`) ?? text(direction === "desc" ? "newest" : "oldest");
    return customText(`sort.${value}`) ?? `${facetName(field)} ${direction === "desc" ? "↓" : "↑"}`;
  }

  const customText = (key) => (Object.hasOwn(settings.texts, key) ? String(settings.texts[key]) : undefined);

  function facetName(field) {
    const words = field.replace(/[_-]+/g, " ").trim();
    return customText(`facet.${field}`) ?? (field === "author" ? text("author") : words.charAt(0).toLocaleUpperCase() + words.slice(1));
  }

  function showFacets(counts) {
    const names = (fields?.names || []).filter((field) => Object.keys(counts[field] || {}).length || state.filters.has(field));
    facets.replaceChildren(...names.map((field) => makeFacet(field, counts[field] || {}, counts)));
    showFilters.hidden = !names.length;
    const chosen = names.reduce((sum, field) => sum + (state.filters.get(field)?.size || 0), 0);
    showFilters.textContent = text("filters") + (chosen ? ` (${formatNumber(chosen)})` : "");
  }

  function makeFacet(field, counts, allCounts) {
    const chosen = state.filters.get(field) || new Set();
    const values = [...new Set([...Object.keys(counts), ...chosen])];
    const visible = expandedFacets.has(field) ? values : values.filter((value, index) => index < COLLAPSED_VALUES || chosen.has(value));
    const isFlag = values.every((value) => value === "true" || value === "false");
    const fieldset = make("fieldset", { part: "facet" }, make("legend", {}, facetName(field)), ...visible.map((value) =>
      make("label", { class: "value" }, checkboxFor(field, value, chosen.has(value)),
        isFlag ? makeText("span", value === "true" ? "yes" : "no") : make("bdi", core.pageLang, value),
        make("span", { class: "count" }, formatNumber(counts[value] || 0)))));
    if (visible.length < values.length) {
      const showAll = makeText("button", "showAll", { type: "button", class: "quiet", "aria-label": `${text("showAll")}: ${facetName(field)}` });
      showAll.addEventListener("click", () => {
        expandedFacets.add(field);
        showFacets(allCounts);
        checkboxFor(field, values.find((value) => !visible.includes(value)), false).focus();
      });
      fieldset.append(showAll);
    }
    return fieldset;
  }

  function checkboxFor(field, value, isChosen) {
    const key = JSON.stringify([field, value]);
    if (!checkboxes.has(key)) {
      const box = make("input", { type: "checkbox" });
      box.addEventListener("change", () => {
        const values = new Set(state.filters.get(field));
        if (box.checked) values.add(value);
        else values.delete(value);
        changeState({ filters: new Map([...state.filters, [field, values]].filter(([, selected]) => selected.size)) });
      });
      checkboxes.set(key, box);
    }
    checkboxes.get(key).checked = isChosen;
    return checkboxes.get(key);
  }

  // --- The visitor's actions

  const setDirection = () => { input.dir = input.value ? "auto" : core.boxLang.dir; };

  function searchTypedText() {
    clearTimeout(typingTimer);
    const typed = input.value.trim();
    if (typed === state.text && !isWaiting && retry.hidden) return;
    state = { ...state, text: typed, page: 1 };
    updateUrl(false);
    run();
  }

  if (hasField) input.addEventListener("input", () => {
    setDirection();
    clearTimeout(typingTimer);
    typingTimer = setTimeout(searchTypedText, input.value.trim() ? TYPING_PAUSE_MS : 0);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    mayRedirect = true;
    searchTypedText();
    if (isWaiting || (shownResponse && core.redirect(shownResponse, state.text))) return;
    mayRedirect = false;
  });
  sortSelect.addEventListener("change", () => changeState({ sort: sortSelect.value }));
  clearFilters.addEventListener("click", () => {
    changeState({ filters: new Map() });
    focusTarget.focus();
  });
  loadMoreButton.addEventListener("click", loadMore);
  retry.addEventListener("click", () => {
    focusTarget.focus();
    run();
  });
  showFilters.addEventListener("click", () => {
    showFilters.setAttribute("aria-expanded", String(facets.classList.toggle("open")));
  });
  close.addEventListener("click", () => dialog.close());
  dialog?.addEventListener("close", removeFromUrl);
  view.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && dialog && !event.isComposing && event.keyCode !== 229) {
      event.preventDefault(); // The browser would only clear the field.
      event.stopPropagation();
      dialog.close();
    }
    // The page can't see that the target of these keys is a field, and might take them for its shortcuts.
    if (event.key?.length === 1 && (dialog || !(event.ctrlKey || event.metaKey))) event.stopPropagation();
  });

  function search(query) {
    core.remember(query);
    state = { text: query.trim(), page: 1, sort: "", filters: new Map() };
    updateUrl(true);
    fillField();
    open();
    if (container) host.scrollIntoView({ block: "nearest" });
    if (hasField) input.focus({ preventScroll: true });
    run();
  }

  function unmount() {
    leavesPage = true;
    latestRequest += 1;
    clearTimeout(typingTimer);
    controller?.abort();
    if (current === shownView) current = null;
    if (dialog) {
      dialog.close();
      wrapper.remove();
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

/** Whether a field makes a useful facet: its values are short, and documents share them. */
function isUseful(name, counts) {
  const values = Object.keys(counts);
  const documents = Object.values(counts).reduce((sum, count) => sum + count, 0);
  return !UNFACETED_FIELDS.has(name) && values.length > 1 && documents >= 2 * values.length && values.every((value) => value.length <= MAX_VALUE_CHARS);
}
