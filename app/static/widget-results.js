/* The full view of the search box: facets, sorting, and "load more". widget.js loads it when it is needed.
 *
 * Its state is in the page's address: q, page, sort, and f.<field> for each value that is chosen. All other parameters
 * of the address belong to the page and are kept. What the engine answers is shown as text, never as HTML.
 */

const PAGE = 20; // Results that "load more" adds.
const MOST_PAGES = 50;
const AT_ONCE = 100; // Most results of one answer.
const TYPING_MS = 220; // Between the last keystroke and the search.
const SLOW_MS = 400; // After which a search is said to be running.
const MOST_FACETS = 8;
const FIRST_VALUES = 8; // Values of a facet that are shown before "show all".
const LONGEST_VALUE = 80; // What is longer is no name of a group.
const DATES = ["date:desc", "date:asc"];
const NO_FACETS = new Set(["id", "date"]);

// In this order; {n} and {all} are numbers. A page may replace each by its name with the option `texts`.
const NAMES = ["close", "sort", "relevance", "newest", "oldest", "loadMore", "shown", "filters", "clearFilters", "showAll",
  "yes", "no", "again", "start", "author"];
const TEXTS = {
  en: "Close|Sort by|Relevance|Newest first|Oldest first|Load more|{n} of {all}|Filters|Remove all filters|Show all|Yes|No|Try again|What are you looking for?|Author",
  de: "Schließen|Sortieren nach|Relevanz|Neueste zuerst|Älteste zuerst|Mehr laden|{n} von {all}|Filter|Alle Filter entfernen|Alle anzeigen|Ja|Nein|Noch einmal versuchen|Wonach suchen Sie?|Autor",
  fr: "Fermer|Trier par|Pertinence|Plus récents d’abord|Plus anciens d’abord|Afficher plus|{n} sur {all}|Filtres|Supprimer tous les filtres|Tout afficher|Oui|Non|Réessayer|Que cherchez-vous ?|Auteur",
  es: "Cerrar|Ordenar por|Relevancia|Más recientes primero|Más antiguos primero|Cargar más|{n} de {all}|Filtros|Quitar todos los filtros|Mostrar todo|Sí|No|Reintentar|¿Qué está buscando?|Autor",
  it: "Chiudi|Ordina per|Rilevanza|Prima i più recenti|Prima i meno recenti|Carica altri|{n} di {all}|Filtri|Rimuovi tutti i filtri|Mostra tutto|Sì|No|Riprova|Che cosa cerca?|Autore",
  pt: "Fechar|Ordenar por|Relevância|Mais recentes primeiro|Mais antigos primeiro|Carregar mais|{n} de {all}|Filtros|Remover todos os filtros|Mostrar tudo|Sim|Não|Tentar novamente|O que procura?|Autor",
  nl: "Sluiten|Sorteren op|Relevantie|Nieuwste eerst|Oudste eerst|Meer laden|{n} van {all}|Filters|Alle filters wissen|Alles tonen|Ja|Nee|Opnieuw proberen|Waar bent u naar op zoek?|Auteur",
  sv: "Stäng|Sortera efter|Relevans|Nyaste först|Äldsta först|Visa fler|{n} av {all}|Filter|Ta bort alla filter|Visa alla|Ja|Nej|Försök igen|Vad letar du efter?|Författare",
  da: "Luk|Sortér efter|Relevans|Nyeste først|Ældste først|Vis flere|{n} af {all}|Filtre|Fjern alle filtre|Vis alle|Ja|Nej|Prøv igen|Hvad leder du efter?|Forfatter",
  no: "Lukk|Sorter etter|Relevans|Nyeste først|Eldste først|Vis flere|{n} av {all}|Filtre|Fjern alle filtre|Vis alle|Ja|Nei|Prøv igjen|Hva leter du etter?|Forfatter",
  fi: "Sulje|Järjestä|Osuvuus|Uusimmat ensin|Vanhimmat ensin|Näytä lisää|{n}/{all}|Suodattimet|Poista kaikki suodattimet|Näytä kaikki|Kyllä|Ei|Yritä uudelleen|Mitä etsit?|Tekijä",
  hu: "Bezárás|Rendezés|Relevancia|Legújabb elöl|Legrégebbi elöl|Több betöltése|{n} / {all}|Szűrők|Összes szűrő törlése|Összes megjelenítése|Igen|Nem|Újra|Mit keres?|Szerző",
  ro: "Închide|Sortează după|Relevanță|Cele mai noi întâi|Cele mai vechi întâi|Încarcă mai multe|{n} din {all}|Filtre|Elimină toate filtrele|Arată tot|Da|Nu|Încearcă din nou|Ce căutați?|Autor",
  pl: "Zamknij|Sortuj według|Trafność|Od najnowszych|Od najstarszych|Wczytaj więcej|{n} z {all}|Filtry|Usuń wszystkie filtry|Pokaż wszystkie|Tak|Nie|Spróbuj ponownie|Czego szukasz?|Autor",
  cs: "Zavřít|Seřadit podle|Relevance|Od nejnovějších|Od nejstarších|Načíst další|{n} z {all}|Filtry|Odebrat všechny filtry|Zobrazit vše|Ano|Ne|Zkusit znovu|Co hledáte?|Autor",
  tr: "Kapat|Sırala|İlgi düzeyi|Önce en yeni|Önce en eski|Daha fazla yükle|{n} / {all}|Filtreler|Tüm filtreleri kaldır|Tümünü göster|Evet|Hayır|Yeniden dene|Ne arıyorsunuz?|Yazar",
  id: "Tutup|Urutkan menurut|Relevansi|Terbaru dahulu|Terlama dahulu|Muat lebih banyak|{n} dari {all}|Filter|Hapus semua filter|Tampilkan semua|Ya|Tidak|Coba lagi|Apa yang Anda cari?|Penulis",
  ca: "Tanca|Ordena per|Rellevància|Els més nous primer|Els més antics primer|Carrega’n més|{n} de {all}|Filtres|Suprimeix tots els filtres|Mostra-ho tot|Sí|No|Torna-ho a provar|Què busqueu?|Autor",
  eu: "Itxi|Ordenatu honen arabera|Garrantzia|Berrienak lehenik|Zaharrenak lehenik|Kargatu gehiago|{n} / {all}|Iragazkiak|Kendu iragazki guztiak|Erakutsi guztiak|Bai|Ez|Saiatu berriro|Zer bilatzen duzu?|Egilea",
  et: "Sulge|Järjesta|Asjakohasus|Uuemad eespool|Vanemad eespool|Näita veel|{n} / {all}|Filtrid|Eemalda kõik filtrid|Näita kõiki|Jah|Ei|Proovi uuesti|Mida otsid?|Autor",
  ga: "Dún|Sórtáil de réir|Ábharthacht|Is nuaí ar dtús|Is sine ar dtús|Lódáil tuilleadh|{n} as {all}|Scagairí|Bain gach scagaire|Taispeáin gach rud|Tá|Níl|Bain triail eile as|Cad atá á lorg agat?|Údar",
  lt: "Uždaryti|Rikiuoti pagal|Atitiktį|Naujausi pirmiau|Seniausi pirmiau|Rodyti daugiau|{n} iš {all}|Filtrai|Pašalinti visus filtrus|Rodyti viską|Taip|Ne|Bandyti dar kartą|Ko ieškote?|Autorius",
  eo: "Fermi|Ordigi laŭ|Rilateco|Plej novaj unue|Plej malnovaj unue|Montri pliajn|{n} el {all}|Filtriloj|Forigi ĉiujn filtrilojn|Montri ĉiujn|Jes|Ne|Provi denove|Kion vi serĉas?|Aŭtoro",
  el: "Κλείσιμο|Ταξινόμηση κατά|Συνάφεια|Νεότερα πρώτα|Παλαιότερα πρώτα|Περισσότερα|{n} από {all}|Φίλτρα|Κατάργηση όλων των φίλτρων|Εμφάνιση όλων|Ναι|Όχι|Δοκιμάστε ξανά|Τι αναζητάτε;|Συντάκτης",
  ru: "Закрыть|Сортировать|По релевантности|Сначала новые|Сначала старые|Показать ещё|{n} из {all}|Фильтры|Сбросить все фильтры|Показать все|Да|Нет|Повторить|Что вы ищете?|Автор",
  sr: "Затвори|Поређај по|Релевантност|Прво најновије|Прво најстарије|Учитај још|{n} од {all}|Филтери|Уклони све филтере|Прикажи све|Да|Не|Покушај поново|Шта тражите?|Аутор",
  ar: "إغلاق|الترتيب حسب|الصلة|الأحدث أولاً|الأقدم أولاً|عرض المزيد|{n} من {all}|عوامل التصفية|إزالة كل عوامل التصفية|عرض الكل|نعم|لا|إعادة المحاولة|عمّ تبحث؟|الكاتب",
  fa: "بستن|مرتب‌سازی بر اساس|ارتباط|جدیدترین‌ها|قدیمی‌ترین‌ها|نمایش بیشتر|{n} از {all}|فیلترها|حذف همهٔ فیلترها|نمایش همه|بله|خیر|تلاش دوباره|دنبال چه می‌گردید؟|نویسنده",
  hi: "बंद करें|क्रम|प्रासंगिकता|नवीनतम पहले|पुराने पहले|और दिखाएँ|{all} में से {n}|फ़िल्टर|सभी फ़िल्टर हटाएँ|सभी दिखाएँ|हाँ|नहीं|फिर कोशिश करें|आप क्या खोज रहे हैं?|लेखक",
  ne: "बन्द गर्नुहोस्|क्रम|सान्दर्भिकता|नयाँ पहिले|पुराना पहिले|थप देखाउनुहोस्|{all} मध्ये {n}|फिल्टर|सबै फिल्टर हटाउनुहोस्|सबै देखाउनुहोस्|हो|होइन|फेरि प्रयास गर्नुहोस्|के खोज्दै हुनुहुन्छ?|लेखक",
  hy: "Փակել|Դասավորել ըստ|Համապատասխանության|Նախ նորերը|Նախ հները|Ցույց տալ ավելին|{n}՝ {all}-ից|Զտիչներ|Հեռացնել բոլոր զտիչները|Ցույց տալ բոլորը|Այո|Ոչ|Կրկին փորձել|Ի՞նչ եք փնտրում|Հեղինակ",
  ta: "மூடு|வரிசைப்படுத்து|பொருத்தம்|புதியவை முதலில்|பழையவை முதலில்|மேலும் காட்டு|{all} இல் {n}|வடிகட்டிகள்|எல்லா வடிகட்டிகளையும் நீக்கு|அனைத்தையும் காட்டு|ஆம்|இல்லை|மீண்டும் முயலவும்|எதைத் தேடுகிறீர்கள்?|ஆசிரியர்",
  yi: "פֿאַרמאַכן|סאָרטירן לויט|שייכות|נײַסטע ערשט|עלטסטע ערשט|ווײַזן מער|{n} פֿון {all}|פֿילטערס|אַוועקנעמען אַלע פֿילטערס|ווײַזן אַלץ|יאָ|ניין|פּרוּווט נאָך אַ מאָל|וואָס זוכט איר?|מחבר",
  ja: "閉じる|並べ替え|関連度順|新しい順|古い順|もっと見る|{all} 件中 {n} 件|絞り込み|絞り込みをすべて解除|すべて表示|はい|いいえ|再試行|何をお探しですか？|著者",
  zh: "关闭|排序方式|相关性|最新优先|最旧优先|加载更多|{n} / {all}|筛选|清除所有筛选|显示全部|是|否|重试|您想找什么？|作者",
  ko: "닫기|정렬|관련도순|최신순|오래된순|더 보기|{all}개 중 {n}개|필터|모든 필터 해제|모두 보기|예|아니요|다시 시도|무엇을 찾으시나요?|저자",
  th: "ปิด|เรียงตาม|ความเกี่ยวข้อง|ใหม่สุดก่อน|เก่าสุดก่อน|แสดงเพิ่มเติม|{n} จาก {all}|ตัวกรอง|ล้างตัวกรองทั้งหมด|แสดงทั้งหมด|ใช่|ไม่ใช่|ลองอีกครั้ง|คุณกำลังค้นหาอะไร|ผู้เขียน",
  vi: "Đóng|Sắp xếp theo|Mức độ liên quan|Mới nhất trước|Cũ nhất trước|Xem thêm|{n} trên {all}|Bộ lọc|Xóa mọi bộ lọc|Hiện tất cả|Có|Không|Thử lại|Bạn đang tìm gì?|Tác giả",
};

const STYLE = `
  .view { container-type: inline-size; color: var(--text); background: var(--ground); font: inherit; }
  dialog { position: fixed; inset: 0; width: 100%; height: 100%; max-width: none; max-height: none; margin: 0; padding: 0; border: 0;
    color: var(--text); background: var(--ground); overscroll-behavior: contain; overflow-y: auto; }
  dialog .view { max-width: 1100px; min-height: 100%; margin: 0 auto; padding: 16px; }
  .top { display: flex; gap: 8px; margin-bottom: 12px; }
  .top form { flex: 1; min-width: 0; }
  dialog .top { position: sticky; top: 0; z-index: 1; background: var(--ground); padding: 8px 0; margin-top: -8px; }
  button, select { font: inherit; min-height: 44px; padding: 8px 14px; color: var(--text); background: var(--ground);
    border: 1px solid var(--line); border-radius: 8px; cursor: pointer; max-width: 100%; }
  button:hover, select:hover { background: var(--chosen); }
  button[aria-disabled="true"] { opacity: .6; cursor: progress; }
  :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
  .quiet { border: 0; min-height: 32px; padding: 4px 0; color: var(--accent); text-decoration: underline; background: none; text-align: start; }
  .hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
  .line { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 16px; margin-bottom: 12px; }
  .view .status { flex: 1 1 10em; padding: 0; font-size: 15px; }
  .order { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 8px; font-size: 15px; }
  .facets { display: none; margin-bottom: 16px; }
  .facets.open { display: block; }
  fieldset { border: 0; margin: 0 0 16px; padding: 0; min-width: 0; }
  legend { padding: 0; font-weight: 600; overflow-wrap: anywhere; }
  .value { display: flex; align-items: center; gap: 10px; min-height: 32px; font-size: 15px; cursor: pointer; }
  .value input { flex: none; width: 18px; height: 18px; min-height: 0; margin: 0; accent-color: var(--accent); }
  .value bdi { overflow-wrap: anywhere; min-width: 0; }
  .count { margin-inline-start: auto; color: var(--soft); font-variant-numeric: tabular-nums; }
  .hits { list-style: none; margin: 0; padding: 0; transition: opacity .15s; }
  .hits[aria-busy="true"] { opacity: .6; }
  .hits li { position: relative; padding: 12px 8px; border-top: 1px solid color-mix(in srgb, var(--line) 45%, transparent);
    overflow-wrap: anywhere; border-radius: 6px; cursor: default; }
  .hits li:has(a) { cursor: pointer; }
  .hits li:hover { background: var(--chosen); }
  h2 { font: inherit; }
  h3 { font: inherit; font-size: 17px; margin: 0; }
  h3 a { color: inherit; text-decoration: underline; text-underline-offset: 3px; text-decoration-thickness: 1px; }
  h3 a::after { content: ""; position: absolute; inset: 0; }
  .hits p { margin: 2px 0 0; }
  .where { font-size: 13px; color: var(--soft); text-align: start; }
  .more { display: block; margin: 16px auto; min-width: min(260px, 100%); }
  @container (min-width: 700px) {
    .columns { display: grid; grid-template-columns: 220px minmax(0, 1fr); gap: 0 32px; align-items: start; }
    .columns:not(:has(.facets fieldset)) { grid-template-columns: minmax(0, 1fr); }
    .facets, .facets.open { display: block; }
    .facets:not(:has(fieldset)) { display: none; }
    .unfold { display: none; }
  }
  @media (prefers-reduced-motion: reduce) { .hits { transition: none; } }
  @media (forced-colors: active) { .hits li { border-top-color: CanvasText; } }
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
  return { text: (parameters.get("q") || "").slice(0, 200), page, sort: parameters.get("sort") || "", refined };
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
 * @param core What the box and its view share: settings, texts, and how they search.
 * @param container The element to show it in; without one, a dialog covers the page.
 * @param query The text to search for; without one, what the page's address says.
 * @returns How to take it away again.
 */
export function showResults(core, { container = null, query } = {}) {
  if (current === null || current.core !== core || current.container !== container) {
    current?.unmount();
    current = makeView(core, container);
  }
  if (query === undefined) current.follow();
  else current.search(query);
  return current;
}

function makeView(core, container) {
  const { element, marked } = core;
  const text = { ...textsOf("en"), ...textsOf(core.language), ...core.texts };
  const number = (value) => value.toLocaleString(core.language);

  const host = container || document.body.appendChild(document.createElement("div"));
  const root = host.shadowRoot || host.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(STYLE);
  root.adoptedStyleSheets = [core.sheet, sheet];
  host.dataset.theme = core.settings.theme;

  const heading = element("h2", { id: "heading", class: "hidden" }, text.results);
  const input = element("input", { type: "search", "aria-label": text.label, placeholder: core.settings.placeholder || text.label,
    maxlength: "200", autocomplete: "off", spellcheck: "false", enterkeyhint: "search", dir: "auto", part: "input" });
  const form = element("form", {}, input);
  const close = element("button", { type: "button" }, text.close);
  const unfold = element("button", { type: "button", class: "unfold", "aria-expanded": "false", "aria-controls": "facets", hidden: "" });
  const status = element("p", { class: "status", role: "status", part: "status" });
  const again = element("button", { type: "button", hidden: "" }, text.again);
  const order = element("select", { id: "order" });
  const ordering = element("div", { class: "order", hidden: "" }, element("label", { for: "order" }, text.sort), order);
  const clear = element("button", { type: "button", class: "quiet", hidden: "" }, text.clearFilters);
  const groups = element("div");
  const facets = element("div", { id: "facets", class: "facets", role: "group", "aria-label": text.filters }, groups);
  const list = element("ol", { class: "hits", "aria-labelledby": "heading" });
  const more = element("button", { type: "button", class: "more", part: "more", hidden: "" }, text.loadMore);
  const view = element("section", { class: "view", "aria-labelledby": "heading", ...core.itsOwn },
    heading, element("div", { class: "top" }, form, ...(container ? [] : [close])),
    element("div", { class: "line" }, status, again, clear, unfold, ordering),
    element("div", { class: "columns" }, facets, element("div", {}, list, more)));
  const dialog = container ? null : element("dialog", { part: "dialog", "aria-labelledby": "heading", ...core.itsOwn }, view);
  root.replaceChildren(dialog || view);

  let state = readAddress();
  let fields = null; // What the site has, once it is known: names of facets, and whether there are dates.
  let latest = 0;
  let typing = 0;
  let recorded = null; // The text that analytics were told of.
  let shown = { total: 0, hits: [] };
  let isWaiting = false;
  let isGone = false;
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
    if (!isOpen()) dialog.showModal();
  }

  function leave() {
    if (dialog.open || isGone || !hasView()) return; // It was opened again, or closed because the address changed.
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
    if (input.value.trim() !== state.text) input.value = state.text;
    run();
  }

  /** Takes a choice of the visitor: an entry of the history, from the first page on. */
  function choose(changes) {
    state = { ...state, page: 1, ...changes };
    write(true);
    run();
  }

  // --- Searching

  const offered = () => ["", ...(core.settings.sort || (fields?.hasDates ? DATES : []))];

  async function learnFields() {
    if (fields === null) {
      const wanted = core.settings.facets;
      const { facets: seen, areAll } = await core.ask("", { limit: 0, facets: wanted && !wanted.length ? ["date"] : ["*"], isRecorded: false });
      const useful = Object.keys(seen).filter((name) => isUseful(name, seen[name])).slice(0, MOST_FACETS);
      const names = wanted ? wanted.filter((name) => !areAll || name in seen) : useful;
      fields = { names, hasDates: Object.keys(seen.date || {}).length > 0 };
    }
    return fields;
  }

  async function find(offset, limit) {
    const { names } = await learnFields();
    const refined = new Map([...state.refined].filter(([field]) => names.includes(field)));
    const asked = { sort: offered().includes(state.sort) ? state.sort : "" };
    const query = state.text;
    const isRecorded = query !== recorded;
    recorded = query;
    const answers = [core.ask(query, { ...asked, offset, limit, refined, facets: offset ? [] : names, isRecorded })];
    if (!offset) {
      // Values of one field are alternatives: each is counted as if none of its field were chosen.
      for (const field of refined.keys()) {
        const others = new Map([...refined].filter(([other]) => other !== field));
        answers.push(core.ask(query, { limit: 0, refined: others, facets: [field], isRecorded: false }));
      }
    }
    const [main, ...counts] = await Promise.all(answers);
    return { ...main, refined, facets: Object.assign({}, main.facets, ...counts.map((answer) => answer.facets)) };
  }

  async function run() {
    clearTimeout(typing);
    const turn = ++latest;
    if (!state.text && !state.refined.size) {
      shown = { total: 0, hits: [] };
      show({ ...shown, facets: {}, refined: new Map() });
      say(text.start);
      return;
    }
    const slow = wait();
    try {
      const wanted = state.page * PAGE;
      const first = await find(0, Math.min(wanted, AT_ONCE));
      while (turn === latest && first.hits.length < Math.min(wanted, first.total)) {
        const next = await find(first.hits.length, Math.min(AT_ONCE, wanted - first.hits.length));
        if (!next.hits.length) break;
        first.hits.push(...next.hits);
      }
      if (turn !== latest) return;
      shown = first;
      show(first);
      tellCount();
      core.emit("search", { query: state.text, total: first.total, hits: first.hits });
    } catch (error) {
      if (turn === latest) fail(error);
    } finally {
      settle(slow, turn);
    }
  }

  async function loadMore() {
    if (isWaiting) return;
    const turn = ++latest;
    const slow = wait();
    try {
      const next = await find(shown.hits.length, PAGE);
      if (turn !== latest) return;
      const from = shown.hits.length;
      shown.hits.push(...next.hits);
      state.page = Math.max(1, Math.ceil(shown.hits.length / PAGE));
      write(false);
      list.append(...next.hits.map((hit, at) => row(hit, from + at)));
      const isFocused = root.activeElement === more;
      more.hidden = !hasMore() || !next.hits.length;
      if (isFocused && more.hidden) focusHit(from);
      tellCount();
    } catch (error) {
      if (turn === latest) fail(error, true);
    } finally {
      settle(slow, turn);
    }
  }

  const hasMore = () => shown.hits.length < shown.total && state.page < MOST_PAGES;

  function wait() {
    isWaiting = true;
    list.setAttribute("aria-busy", "true");
    more.setAttribute("aria-disabled", "true");
    return setTimeout(() => say(text.wait), SLOW_MS);
  }

  function settle(slow, turn) {
    clearTimeout(slow);
    if (turn !== latest) return;
    isWaiting = false;
    list.removeAttribute("aria-busy");
    more.removeAttribute("aria-disabled");
  }

  // --- What is shown

  function say(...message) {
    status.replaceChildren(...message);
    again.hidden = true;
  }

  function fail(error, isKept = false) {
    const reason = core.reasonOf(error);
    if (!isKept) {
      shown = { total: 0, hits: [] };
      list.replaceChildren();
      more.hidden = true;
    }
    say(text[reason]);
    again.hidden = false;
    core.emit("error", { reason });
  }

  function tellCount() {
    const { total, hits } = shown;
    if (!total) {
      const [before, after] = text.none.split("{q}");
      say(before, element("bdi", {}, state.text), after ?? "");
      return;
    }
    const count = core.count(total);
    say(hits.length < total ? `${count} (${text.shown.replace("{n}", number(hits.length)).replace("{all}", number(total))})` : count);
  }

  function show({ hits, facets: counted, refined }) {
    const focused = root.activeElement;
    list.replaceChildren(...hits.map(row));
    more.hidden = !hasMore();
    showFacets(counted, refined);
    showOrder();
    clear.hidden = !state.refined.size;
    // What had the focus is in its place again, or is gone: then the next best thing has it.
    if (focused && focused !== root.activeElement) (focused.isConnected && !focused.hidden ? focused : input).focus({ preventScroll: true });
    const { hit } = pageState().siteSearch || {};
    if (hit !== undefined && isReturning) focusHit(hit);
    isReturning = false;
  }

  let isReturning = performance.getEntriesByType("navigation")[0]?.type === "back_forward";

  function focusHit(position) {
    const link = list.children[position]?.querySelector("a");
    link?.focus();
    link?.scrollIntoView({ block: "nearest" });
  }

  function row(hit, position) {
    const address = core.addressOf(hit.url);
    const title = marked(hit.title);
    const shownTitle = address ? [element("a", { href: address }, ...title)] : title;
    const made = element("li", { part: "hit" }, element("h3", { class: "title", part: "title", ...core.thePages }, ...shownTitle));
    if (hit.snippet) made.append(element("p", { class: "snippet", part: "snippet", ...core.thePages }, ...marked(hit.snippet)));
    if (address) {
      const { host: name, pathname } = new URL(address);
      made.append(element("p", { class: "where" }, element("bdi", { dir: "ltr" }, (name === location.host ? "" : name) + readable(pathname))));
      made.querySelector("a").addEventListener("click", (event) => {
        const state_ = pageState();
        history.replaceState({ ...state_, siteSearch: { ...state_.siteSearch, hit: position } }, "");
        core.select(event, { query: state.text, total: shown.total, hit, position: position + 1 });
      });
    }
    return made;
  }

  function showOrder() {
    const choices = offered();
    ordering.hidden = choices.length < 2 || !shown.total;
    order.replaceChildren(...choices.map((value) => {
      const option = element("option", { value }, nameOfOrder(value));
      option.selected = value === state.sort;
      return option;
    }));
  }

  function nameOfOrder(value) {
    const own = core.texts[`sort.${value}`];
    if (own) return own;
    if (!value) return text.relevance;
    if (DATES.includes(value)) return value === DATES[0] ? text.newest : text.oldest;
    const [field, direction] = value.split(":");
    return `${nameOfField(field)} ${direction === "desc" ? "↓" : "↑"}`;
  }

  function nameOfField(field) {
    const words = field.replace(/[_-]+/g, " ").trim();
    return core.texts[`facet.${field}`] || (field === "author" ? text.author : words.charAt(0).toLocaleUpperCase() + words.slice(1));
  }

  function showFacets(counted, refined) {
    const made = [];
    for (const field of fields?.names || []) {
      const chosen = refined.get(field) || new Set();
      const values = Object.entries(counted[field] || {});
      for (const value of chosen) if (!values.some(([each]) => each === value)) values.push([value, 0]);
      if (!values.length) continue;
      const visible = unfolded.has(field) ? values : values.filter(([value], at) => at < FIRST_VALUES || chosen.has(value));
      const group = element("fieldset", { part: "facet" }, element("legend", {}, nameOfField(field)),
        ...visible.map(([value, count]) => choice(field, value, count, chosen.has(value), values)));
      if (visible.length < values.length) {
        const all = element("button", { type: "button", class: "quiet" }, text.showAll);
        all.append(element("span", { class: "hidden" }, ` ${nameOfField(field)}`));
        all.addEventListener("click", () => {
          unfolded.add(field);
          const next = visible.length;
          showFacets(counted, refined);
          groups.querySelectorAll("fieldset")[made.indexOf(group)]?.querySelectorAll("input")[next]?.focus();
        });
        group.append(all);
      }
      made.push(group);
    }
    groups.replaceChildren(...made);
    unfold.hidden = !made.length;
    const count = [...refined.values()].reduce((sum, values) => sum + values.size, 0);
    unfold.textContent = count ? `${text.filters} (${number(count)})` : text.filters;
  }

  function choice(field, value, count, isChosen, all) {
    const key = JSON.stringify([field, value]);
    if (!boxes.has(key)) {
      const made = element("input", { type: "checkbox" });
      made.addEventListener("change", () => {
        const values = new Set(state.refined.get(field));
        if (made.checked) values.add(value);
        else values.delete(value);
        const refined = new Map([...state.refined, [field, values]].filter(([, each]) => each.size));
        choose({ refined });
      });
      boxes.set(key, made);
    }
    const box = boxes.get(key);
    box.checked = isChosen;
    const isFlag = all.every(([each]) => each === "true" || each === "false");
    const name = isFlag ? (value === "true" ? text.yes : text.no) : value;
    return element("label", { class: "value" }, box, element("bdi", core.thePages.lang ? { lang: core.thePages.lang } : {}, name),
      element("span", { class: "count" }, number(count)));
  }

  // --- What the visitor does

  input.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      state = { ...state, text: input.value.trim(), page: 1 };
      write(false);
      run();
    }, input.value.trim() ? TYPING_MS : 0);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(typing);
    if (input.value.trim() === state.text && !isWaiting && again.hidden) return;
    state = { ...state, text: input.value.trim(), page: 1 };
    write(false);
    run();
  });
  order.addEventListener("change", () => choose({ sort: order.value }));
  clear.addEventListener("click", () => {
    choose({ refined: new Map() });
    input.focus();
  });
  more.addEventListener("click", loadMore);
  again.addEventListener("click", () => {
    input.focus();
    run();
  });
  unfold.addEventListener("click", () => {
    unfold.setAttribute("aria-expanded", String(facets.classList.toggle("open")));
  });
  close.addEventListener("click", () => dialog.close());
  dialog?.addEventListener("close", leave);

  return {
    core,
    container,
    follow,
    resume: () => { if (isWaiting) run(); },
    search(query) {
      state = { ...readAddress(), text: query.trim(), page: 1, sort: "", refined: new Map() };
      write(true);
      input.value = state.text;
      open();
      if (container) host.scrollIntoView({ block: "nearest" });
      input.focus({ preventScroll: true });
      run();
    },
    unmount() {
      isGone = true;
      latest += 1;
      clearTimeout(typing);
      if (dialog?.open) dialog.close();
      if (container) root.replaceChildren();
      else host.remove();
      if (current?.core === core) current = null;
    },
  };
}

function textsOf(language) {
  const words = Object.hasOwn(TEXTS, language) ? TEXTS[language].split("|") : [];
  return Object.fromEntries(words.map((word, at) => [NAMES[at], word]));
}

/** Whether a field sorts documents into groups: its values are short, and most of them are those of several documents. */
function isUseful(name, counts) {
  const values = Object.keys(counts);
  const documents = Object.values(counts).reduce((sum, count) => sum + count, 0);
  return !NO_FACETS.has(name) && values.length > 1 && documents >= 2 * values.length && values.every((value) => value.length <= LONGEST_VALUE);
}

function readable(path) {
  try {
    return decodeURI(path);
  } catch {
    return path; // Not UTF-8.
  }
}
