/* A search box for any page:
 *
 *   <div id="site-search"></div>
 *   <script src="https://…/widget.js" data-key="svc_pub_…" async></script>
 *
 * If a framework replaces the element without loading a page, the box appears in the new element. Or mount it yourself:
 *
 *   const box = SiteSearch.mount(element, { key: "svc_pub_…", onSelect: (hit) => router.push(hit.url) });
 *   box.unmount();
 *
 * docs/search-box.md lists attributes, options, events, CSS variables, and parts. Responses are shown as text, never as
 * HTML. Nothing is stored on the device unless data-recent="true".
 *
 * The full view is a separate module, loaded on first use. BASE/widget-results.js exports
 *
 *   showResults(core, { container, query }) → { unmount() }
 *
 * `container` is the page's <div data-site-search-results>; without one, the view covers the page and replaces the
 * panel. If `query` is undefined, the view reads it from the page's URL. The module documents `core`.
 */
(() => {
"use strict";

const SEARCH_INTERVAL_MS = 120; // Between the starts of two searches while the visitor types.
const SLOW_CONNECTION_MS = 300; // A slower response means a slow connection: then send one request at a time, and at most one in this time.
const STALE_MS = 2000; // Age at which a search for an older text is canceled in favor of the latest text.
const SEARCH_EVENT_DELAY_MS = 300; // Before the event "search", so that pages don't get one for each keystroke.
const INTENT_DELAY_MS = 1500; // How long results are visible before their query is logged as what the visitor looked for.
const WAIT_MESSAGE_DELAY_MS = 250; // Before "Searching…" appears.
const ANNOUNCEMENT_DELAY_MS = 500; // Screen readers announce the results after a pause, not after each keystroke.
const TIMEOUT_MS = 15_000;
const SAME_SEARCH_MS = 30_000; // Within this time, a longer or shorter version of the same text counts as one search.
const INFO_MAX_AGE_MS = 12 * 3600 * 1000; // Engine keys expire after a day, so they are renewed well before that.
const RESPONSE_MAX_AGE_MS = 5 * 60 * 1000;
const MAX_CACHED_RESPONSES = 50;
const MAX_REPORTED_SEARCHES = 10; // The service accepts at most this count in one report with a public key.
const FOLLOW_DELAY_MS = 50; // Between a change of the page and the lookup of the box's element.
const MAX_RECENT = 5;
const MAX_SUGGESTIONS = 4;
const MAX_SNIPPETS = 2; // Snippets of sections per page in the full view; the panel shows one.
const MIN_WIDTH = 340;
const WINDOW_MARGIN = 8; // Pixels between the panel and the edges of the window.

const randomText = () => Array.from(crypto.getRandomValues(new Uint8Array(15)), (byte) => (byte % 36).toString(36)).join("");

// Marks around matches. They are random, so that no document can contain them and pretend to match.
const NONCE = randomText().slice(0, 6);
const MARK_START = `\uE000${NONCE}`;
const MARK_END = `\uE001${NONCE}`;

// The only text that is visible before the visitor does anything. widget-texts.js has the other texts, for the language of the page.
const LABELS = Object.fromEntries("en Search|de Suche|fr Rechercher|es Buscar|it Cerca|pt Pesquisar|nl Zoeken|sv Sök|da Søg|no Søk|fi Haku|hu Keresés|ro Căutare|pl Szukaj|cs Hledat|tr Ara|id Cari|ca Cerca|eu Bilatu|et Otsi|ga Cuardaigh|lt Ieškoti|eo Serĉi|el Αναζήτηση|ru Поиск|sr Претрага|ar بحث|fa جستجو|hi खोजें|ne खोज्नुहोस्|hy Որոնել|ta தேடு|yi זוכן|ja 検索|zh 搜索|ko 검색|th ค้นหา|vi Tìm kiếm".split("|").map((each) => each.split(/ (.*)/)));
const TEXT_NAMES = "results one many none wait paused spent away refused recent clear suggestions more close elsewhere corrected some popular answer navigate open";
const ENGLISH = "Results|1 result|{n} results|Nothing matches “{q}”.|Searching…|Search is turned off.|Search is busy at the moment. Please try again later.|Search cannot be reached at the moment.|Search is not available.|Recent searches|Clear|Suggestions|All results|Close|No results in {context}. Results elsewhere:|Showing results for “{q}”:|No page matches all words. Pages with some of them:|Popular searches|Answer|Navigate|Open";
const LANGUAGE_ALIASES = { nb: "no", nn: "no" };

// Each color for light and dark pages.
const COLORS = {
  ground: ["#fff", "#171d23"], text: ["#17212b", "#e4e9ed"], soft: ["#53606d", "#a2aeb9"], line: ["#868f99", "#75828e"],
  chosen: ["#e6f1f4", "#1b3139"], accent: ["#0b5c73", "#6cc3da"], mark: ["#fff0b3", "#52430a"],
};
const palette = (colorOf) => Object.entries(COLORS).map(([name, pair]) => `--${name}: var(--site-search-${name}, ${colorOf(pair)});`).join("");

const STYLE = `
  :host { display: block; position: relative; }
  :host([hidden]) { display: none; }
  .box { all: initial; display: block; visibility: inherit; color-scheme: inherit; ${palette(([light]) => light)}
    --radius: var(--site-search-radius, 8px); --rule: color-mix(in srgb, var(--line) 40%, var(--ground)); --tint: color-mix(in srgb, var(--chosen) 45%, var(--ground));
    font-size: 16px; line-height: 1.45; font-family: var(--site-search-font, inherit); }
  @supports (color: light-dark(#fff, #000)) { .box { ${palette((pair) => `light-dark(${pair})`)} } }
  :host([data-theme="light"]) .box { color-scheme: light; }
  :host([data-theme="dark"]) .box { color-scheme: dark; }
  :host([data-theme="auto"]) .box { color-scheme: light dark; }
  * { box-sizing: border-box; }
  [hidden] { display: none !important; }
  .live { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
  svg { flex: none; width: 20px; height: 20px; fill: none; stroke: currentColor; stroke-width: 1.75; stroke-linecap: round; stroke-linejoin: round; }
  form { position: relative; display: flex; align-items: center; gap: 8px; margin: 0; }
  input, button, select { font: inherit; color: var(--text); background: var(--ground); border: 1px solid var(--line); border-radius: var(--radius); }
  .field { position: relative; display: flex; flex: 1; align-items: center; min-width: 0; }
  .field > svg { position: absolute; inset-inline-start: 12px; color: var(--soft); pointer-events: none; }
  input[type="search"] { flex: 1; min-width: 0; width: 100%; min-height: 44px; padding: 8px 40px; margin: 0; appearance: none; }
  input::-webkit-search-cancel-button { display: none; }
  input::placeholder { color: var(--soft); opacity: 1; unicode-bidi: plaintext; }
  button { padding: 4px 12px; min-height: 32px; cursor: pointer; }
  .wipe { position: absolute; inset-inline-end: 6px; display: grid; place-items: center; width: 32px; padding: 0; color: var(--soft); background: none; border: 0; }
  input:placeholder-shown ~ .wipe { display: none; }
  .open { display: flex; align-items: center; gap: 10px; width: 100%; min-height: 44px; color: var(--soft); text-align: start; }
  .open:hover { border-color: var(--accent); color: var(--text); }
  .open span { flex: 1; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
  kbd { display: inline-block; min-width: 22px; padding: 1px 6px; font: inherit; font-size: 12px; text-align: center; color: var(--soft); background: var(--ground);
    border: 1px solid var(--rule); border-bottom-width: 2px; border-radius: 5px; }
  :focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
  input:focus-visible { border-color: var(--accent); outline-offset: -1px; }
  .panel { display: flex; flex-direction: column; color: var(--text); background: var(--ground); overflow: hidden; text-align: start; container-type: inline-size; }
  .panel > * { flex: none; }
  #results { flex: 0 1 auto; min-height: 0; padding: 0 8px 8px; overflow-y: auto; overscroll-behavior: contain; scroll-padding: 36px 8px 8px; scrollbar-width: thin; }
  .panel:focus, #results:focus { outline: none; }
  .panel, dialog { visibility: visible; }
  .afloat, dialog { border: 1px solid var(--rule); box-shadow: 0 1px 3px rgb(0 0 0 / .08), 0 16px 40px -8px rgb(0 0 0 / .28); }
  .afloat { position: fixed; z-index: 2147483647; inset: auto; margin: 0; padding: 0; border-radius: calc(1.5 * var(--radius)); }
  dialog { position: fixed; inset: 0 auto auto 50%; translate: -50%; width: min(720px, 100vw); max-width: none; max-height: 80dvh; margin: 0; padding: 0;
    flex-direction: column; overflow: hidden; color: var(--text); background: var(--ground); border-radius: 0 0 calc(1.75 * var(--radius)) calc(1.75 * var(--radius)); }
  dialog[open] { display: flex; }
  dialog::backdrop { background: rgb(10 16 22 / .4); backdrop-filter: blur(4px); }
  dialog > form { padding: 8px; padding-inline: 4px 12px; border-bottom: 1px solid var(--rule); }
  dialog > form > .field > input { border-color: transparent; font-size: 18px; }
  dialog > form > .field > input:focus-visible { outline: none; }
  dialog .wipe { display: none; }
  .close { display: grid; place-items: center; min-width: 40px; padding: 4px; color: var(--soft); border: 0; }
  :is(.wipe, .close):hover { color: var(--text); background: var(--chosen); }
  .close > kbd { display: none; }
  .close > kbd::before { content: "Esc"; }
  @media not (pointer: coarse) { .close > kbd { display: block; } .close > svg { display: none; } }
  dialog .panel { min-height: 0; flex: 0 1 auto; }
  @media (min-width: 720px) { dialog { top: 8vh; border-radius: calc(1.75 * var(--radius)); } }
  .status, .notice { margin: 0; padding: 8px 20px 4px; font-size: 13px; color: var(--soft); overflow-wrap: anywhere; }
  .status.alone { padding: 40px 24px; font-size: 17px; text-align: center; color: var(--text); }
  .alone > svg { display: block; margin: 0 auto 12px; width: 44px; height: 44px; stroke-width: 1.25; color: var(--soft); }
  .notice { font-size: 15px; color: var(--text); background: var(--tint); border-bottom: 1px solid var(--rule); }
  .notice a, .hit.link { color: var(--accent); }
  .heading { position: sticky; top: 0; z-index: 1; margin: 0; padding: 10px 12px 4px; font-size: 13px; font-weight: 600; color: var(--soft); background: var(--ground); text-align: start; }
  .hit { position: relative; display: flow-root; padding: 6px 12px; border-radius: var(--radius); color: inherit; text-decoration: none; overflow-wrap: anywhere; cursor: pointer; }
  .hit:has(> .icon) { display: grid; grid-template-columns: 20px minmax(0, 1fr) auto; column-gap: 12px; }
  .hit > * { grid-column: 2; }
  .hit > .icon { grid-area: 1 / 1 / span 9; margin-top: 2px; color: var(--soft); }
  .hit > .go { position: absolute; inset-block: 0; inset-inline-end: 10px; margin-block: auto; color: var(--accent); visibility: hidden; }
  .hit > .go:dir(rtl) { scale: -1 1; }
  .hit:hover, .hit[aria-selected="true"] { background: var(--chosen); }
  .hit[aria-selected="true"] { box-shadow: inset 3px 0 var(--accent); }
  .hit[aria-selected="true"]:dir(rtl) { box-shadow: inset -3px 0 var(--accent); }
  .hit[aria-selected="true"]:has(> .go) { padding-inline-end: 40px; }
  .hit[aria-selected="true"] > .icon { color: var(--accent); }
  .hit[aria-selected="true"] > .go { visibility: visible; }
  .title { display: block; font-weight: 600; color: var(--text); }
  .snippet { display: block; margin-top: 2px; font-size: 14px; color: var(--text); }
  .hit > .snippet { grid-column: 2 / span 2; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; }
  .meta { display: block; font-size: 13px; color: var(--soft); }
  @container (min-width: 480px) { #results .hit:not(:has(> .image)) > .meta { grid-area: 1 / 3; align-self: center; white-space: nowrap;
    > [part] { display: inline-block; max-width: 11em; overflow: hidden; text-overflow: ellipsis; vertical-align: bottom; } } }
  .hit:hover .meta, .hit[aria-selected="true"] .meta { color: var(--text); }
  .image { grid-area: 1 / 3 / span 9; width: 80px; height: 60px; object-fit: cover; border: 1px solid var(--rule); border-radius: 6px; }
  .query { padding-block: 8px; }
  .chips { display: flex; flex-wrap: wrap; gap: 6px; padding: 4px 12px 8px; }
  .chip.query { display: flex; align-items: center; gap: 6px; padding: 3px 10px; font-size: 14px; color: var(--text); border: 1px solid var(--rule); border-radius: 99px; }
  .chip.query > .icon { width: 15px; height: 15px; margin: 0; }
  .chip.query[aria-selected="true"] { padding-inline-end: 10px; border-color: var(--accent); box-shadow: none; }
  .image ~ .go, .chip > .go { display: none; }
  .section { position: relative; margin-inline-start: 21px; padding: 6px 12px; }
  .section::before { content: ""; position: absolute; inset: 0 auto; inset-inline-start: 0; border-inline-start: 2px solid var(--rule); }
  .section[aria-selected="true"]::before { border-color: transparent; }
  .section + .hit:not(.section) { margin-top: 4px; }
  .section:has(> .icon) { grid-template-columns: 16px minmax(0, 1fr) auto; column-gap: 10px; }
  .section > .icon { width: 16px; height: 16px; margin-top: 3px; }
  #results .section > .snippet { -webkit-line-clamp: 1; }
  .section .title { font-size: 15px; font-weight: 500; }
  .answer { margin: 8px 0 4px; background: var(--tint); border: 1px solid var(--rule); border-radius: var(--radius); overflow: hidden; }
  blockquote { margin: 0; padding-inline-start: 10px; border-inline-start: 3px solid var(--accent); }
  .answer > .meta { display: flex; align-items: center; gap: 8px; margin: 0; padding: 10px 12px 0; font-weight: 600; }
  .answer > .meta svg { width: 18px; height: 18px; color: var(--accent); }
  .answer > .hit { display: block; padding: 6px 12px 10px; }
  .answer > .hit .title { color: var(--accent); }
  .answer .title { margin-top: 6px; font-size: 14px; font-style: normal; }
  .answer cite svg { width: 16px; height: 16px; margin-inline-end: 6px; vertical-align: -3px; }
  .path { font-weight: 400; color: var(--soft); }
  [data-by=site] ~ * [part=site] { display: none; }
  .badge, .site { display: inline-block; padding: 0 6px; font-size: 12px; font-weight: 400; color: var(--text); border: 1px solid var(--line); border-radius: 4px; }
  #results[aria-busy="true"] { opacity: .6; transition: opacity .15s; }
  #results > [role="group"]:not(.answer, .chips, :last-child) { padding-bottom: 4px; margin-bottom: 4px; border-bottom: 1px solid var(--rule); }
  mark { background: color-mix(in srgb, var(--mark) 60%, transparent); color: inherit; border-radius: 3px; padding: 0 1px; margin: 0 -1px; }
  .title mark { background: none; color: var(--accent); text-decoration: underline 1.5px; text-underline-offset: 3px; }
  .foot { display: flex; align-items: center; justify-content: space-between; gap: 4px 16px; padding: 6px 16px; min-height: 44px; margin-top: auto; border-top: 1px solid var(--rule); }
  .keys { display: none; gap: 14px; margin: 0; margin-inline-start: auto; font-size: 12px; color: var(--soft); }
  .keys span { display: flex; gap: 4px; align-items: center; }
  .foot:not(:has(> :not(.keys))) { display: none; }
  .more kbd { display: none; }
  @media not (pointer: coarse) { @container (min-width: 480px) { .keys, .foot:not(:has(> :not(.keys))) { display: flex; } .more kbd { display: inline-block; } } }
  .more, .foot button { min-height: 32px; padding: 4px 0; color: var(--accent); background: none; border: 0; font-size: 14px; font-weight: 600; cursor: pointer; text-decoration: none; }
  .more { display: inline-flex; align-items: center; gap: 4px; }
  .more kbd { font-weight: 400; }
  .more:hover, .foot button:hover { text-decoration: underline; text-underline-offset: 3px; }
  @media (pointer: coarse) { .open kbd { display: none; } }
  @media (forced-colors: active) { .hit[aria-selected="true"] { outline: 2px solid Highlight; outline-offset: -2px; } mark { background: Mark; color: MarkText; } }
  @media print { .open, form, .afloat, dialog { display: none !important; } }
`;

// Icons by Lucide (https://lucide.dev), under the ISC License.
const SHEET_OUTLINE = "M6 22a2 2 0 0 1-2-2V4a2 2 0 0 1 2-2h8a2.4 2.4 0 0 1 1.7.7l3.6 3.6A2.4 2.4 0 0 1 20 8v12a2 2 0 0 1-2 2zM14 2v5a1 1 0 0 0 1 1h5";
const ICONS = {
  page: `${SHEET_OUTLINE}M10 9H8M16 13H8M16 17H8`,
  file: `${SHEET_OUTLINE}M12 18v-6M9 15l3 3 3-3`,
  section: "M4 9h16M4 15h16M10 3 8 21M16 3l-2 18",
  search: "m21 21-4.34-4.34M19 11a8 8 0 1 1-16 0 8 8 0 0 1 16 0",
  recent: "M3 12a9 9 0 1 0 9-9 9.75 9.75 0 0 0-6.74 2.74L3 8M3 3v5h5M12 7v5l4 2",
  popular: "M16 7h6v6M22 7l-8.5 8.5-5-5L2 17",
  answer: "M17 5H3M21 12H8M21 19H8M3 12v7",
  none: "m13.5 8.5-5 5M8.5 8.5l5 5M19 11a8 8 0 1 1-16 0 8 8 0 0 1 16 0M21 21l-4.34-4.34",
  problem: "M12 8v4M12 16h.01M22 12a10 10 0 1 1-20 0 10 10 0 0 1 20 0",
  go: "M20 4v7a4 4 0 0 1-4 4H4M9 10l-5 5 5 5",
  clear: "M18 6 6 18M6 6l12 12",
};

// Builds an inline element because a page's Content-Security-Policy may forbid images.
function icon(name, className = "icon") {
  const NAMESPACE = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(NAMESPACE, "svg");
  setAttributes(svg, { class: className, viewBox: "0 0 24 24", "aria-hidden": "true" });
  svg.append(document.createElementNS(NAMESPACE, "path"));
  svg.firstChild.setAttribute("d", ICONS[name]);
  return svg;
}

// --- Elements and texts.

function setAttributes(element, attributes) {
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
}

function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  setAttributes(element, attributes);
  element.append(...children);
  return element;
}

function markedNodes(value) {
  const [before, ...parts] = String(value).split(MARK_START);
  return [before, ...parts.flatMap((part) => {
    const [match, ...after] = part.split(MARK_END);
    return [make("mark", { part: "mark" }, match), after.join("")];
  })];
}

const withoutMarks = (value) => String(value ?? "").replaceAll(MARK_START, "").replaceAll(MARK_END, "");

function parseUrl(url, base = location.origin) {
  if (typeof url !== "string" || !url) return null;
  try {
    const parsed = new URL(url, base);
    return /^https?:$/.test(parsed.protocol) ? parsed : null;
  } catch {
    return null;
  }
}

const quoted = (value) => `"${String(value).replace(/["\\]/g, "\\$&")}"`;
const conditionsOf = (filters) => Object.entries(filters).map(([field, values]) => `${quoted(field)} IN [${values.map(quoted).join(", ")}]`);

// Returns the page's own values of a field. The crawler reads the same elements.
function pageValues(field) {
  const names = [`site-search:${field}`, { version: "docsearch:version", lang: "docsearch:language" }[field]];
  const metas = [...document.querySelectorAll("meta[name]")];
  const valueLists = names.map((name) => metas.filter((meta) => meta.name.toLowerCase() === name).map((meta) => meta.content.trim()).filter(Boolean));
  return valueLists.find((values) => values.length) ?? [field === "lang" && document.documentElement.lang].filter(Boolean);
}

/** "https://example.com/guide/setup/" -> "example.com › guide › setup". The page's own host is omitted. */
function readablePath({ host, pathname }) {
  const names = pathname.replace(/\/(index\.\w+)?$/, "").split("/").filter(Boolean).map((name) => {
    try {
      return decodeURIComponent(name);
    } catch {
      return name; // Not UTF-8.
    }
  });
  return [...(host === location.host && names.length ? [] : [host]), ...names].join(" › ");
}

const fileKind = (url) => /\.(pdf|docx?|pptx?|xlsx?|od[pst]|epub)$/i.exec(url?.pathname ?? "")?.[1].toUpperCase() ?? "";

// Adds a text fragment to a URL: the sentence or line around the snippet's first match.
function passageUrl(url, snippet) {
  const sentence = String(snippet).split(/[.!?]\s|[…\n\t。！？]/).find((part) => part.includes(MARK_START));
  if (!sentence || url.hash.includes(":~:")) return url;
  const passage = new URL(url);
  passage.hash += `:~:text=${encodeURIComponent(withoutMarks(sentence).trim()).replaceAll("-", "%2D")}`;
  return passage;
}

const sheets = new Map();

function applyStyles(root, ...extraCss) {
  root.adoptedStyleSheets = [STYLE, ...extraCss].map((css) => {
    if (!sheets.has(css)) {
      const sheet = new CSSStyleSheet(); // A page's Content-Security-Policy does not apply to it.
      sheet.replaceSync(css);
      sheets.set(css, sheet);
    }
    return sheets.get(css);
  });
}

// The class "box" resets the properties that the box would inherit from the page.
const wrap = (...children) => make("div", { class: "box" }, ...children);

// The page's `zoom` must not scale the panel and the dialog, which lie above the page.
const undoPageZoom = (element) => { element.style.zoom = 1 / (element.getRootNode().host.currentCSSZoom ?? 1); };

const openDialogs = new Set(); // Dialogs that cover the page.
let pageStyles = [];

// Opens a dialog. The page behind it can't scroll until the last dialog is closed.
function openDialog(dialog) {
  const { style, clientWidth } = document.documentElement;
  if (!openDialogs.size) {
    pageStyles = ["overflow", "scrollbar-gutter"].map((name) => [name, style.getPropertyValue(name), style.getPropertyPriority(name)]);
    if (innerWidth > clientWidth) style.setProperty("scrollbar-gutter", "stable", "important");
    style.setProperty("overflow", "hidden", "important");
  }
  openDialogs.add(dialog);
  dialog.addEventListener("close", () => {
    if (dialog.open) return; // It was opened again before the event arrived.
    openDialogs.delete(dialog);
    if (!openDialogs.size) for (const [name, value, priority] of pageStyles) style.setProperty(name, value, priority);
  }, { once: true });
  undoPageZoom(dialog);
  dialog.showModal();
}

// A page may have an invalid language.
function localeOf(language) {
  try {
    return new Intl.Locale(language);
  } catch {
    return new Intl.Locale("en");
  }
}

function languageOf(BASE, requestedLanguage, customTexts = {}) {
  const base = requestedLanguage.toLowerCase().split(/[-_]/)[0];
  const code = LANGUAGE_ALIASES[base] ?? base;
  const isTranslated = Object.hasOwn(LABELS, code);
  // Custom texts are in the language of the page, whatever language that is.
  const language = isTranslated ? code : Object.keys(customTexts).length ? requestedLanguage : "en";
  const locale = localeOf(language);
  const boxLang = { lang: language, dir: /^(Arab|Hebr|Syrc|Thaa|Nkoo|Adlm|Rohg)$/.test(locale.maximize().script) ? "rtl" : "ltr" };
  const texts = {};

  const addTexts = (names, table) => {
    const translated = (table[language] ?? table.en).split("|");
    names.split(" ").forEach((key, index) => {
      texts[key] = Object.hasOwn(customTexts, key)
        ? { text: String(customTexts[key]), attributes: {} }
        : { text: translated[index], attributes: table[language] || language === "en" ? {} : { lang: "en", dir: "ltr" } };
    });
  };
  addTexts("label", LABELS);
  addTexts(TEXT_NAMES, { en: ENGLISH });
  // If they cannot be loaded, the box stays in English.
  const ready = isTranslated && language !== "en"
    ? import(`${BASE}/widget-texts.js`).then(({ TEXTS }) => addTexts(TEXT_NAMES, TEXTS), console.error)
    : Promise.resolve();

  const formatNumber = (value) => value.toLocaleString(locale);
  const formatDate = (value) => (typeof value !== "string" || Number.isNaN(Date.parse(value)) ? ""
    : new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeZone: "UTC" }).format(new Date(value)));
  const text = (key, values = {}) => texts[key].text.replace(/\{(\w+)\}/g, (all, name) => values[name] ?? all);
  const textNodes = (key, values = {}) => {
    const nodes = texts[key].text.split(/\{(\w+)\}/).map((part, odd) => (odd % 2 ? make("bdi", {}, String(values[part] ?? "")) : part));
    return texts[key].attributes.lang ? [make("span", texts[key].attributes, ...nodes)] : nodes;
  };
  return { boxLang, addTexts, ready, formatNumber, formatDate, text, textNodes, langOf: (key) => ({ ...boxLang, ...texts[key].attributes }) };
}

// --- The service, as one key can use it: searches, usage reports, and analytics.

class SearchError extends Error {
  constructor(reason) {
    super(reason);
    this.reason = reason;
  }
}

const session = randomText();
const services = new Map();

function serviceOf(BASE, KEY, initialInfo) {
  const name = `${BASE} ${KEY}`;
  if (!services.has(name)) services.set(name, makeService(BASE, KEY, initialInfo));
  return services.get(name);
}

function makeService(BASE, KEY, initialInfo) {
  let lastDuration = 0; // Milliseconds until the last response, to recognize slow connections.

  async function load(url, options, signal) {
    const startedAt = performance.now();
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), TIMEOUT_MS);
    signal?.addEventListener("abort", () => controller.abort(), { once: true });
    try {
      const response = await fetch(url, { credentials: "omit", signal: controller.signal, ...options });
      const body = await response.json().catch(() => null);
      lastDuration = performance.now() - startedAt;
      return { status: response.status, body };
    } catch {
      return { status: 0, body: null };
    } finally {
      clearTimeout(timer);
    }
  }

  function errorOf(status, body, request = {}) {
    if (status === 429) return new SearchError("spent");
    if (![400, 401, 403].includes(status)) return new SearchError("away");
    if (body?.message && !request.mayFail) console.error(`Site search: ${request.filters && /filter/.test(body.code) ? "data-filters: " : ""}${body.message}`);
    return new SearchError("refused");
  }

  async function call(path, options = {}) {
    const { status, body } = await load(BASE + path, { ...options, headers: { Authorization: `Bearer ${KEY}`, ...options.headers } });
    if (status === 200 && body) return body;
    throw errorOf(status, body);
  }

  let info = initialInfo ? Promise.resolve(initialInfo) : null;
  let infoLoadedAt = Date.now();

  function clientInfo(mustReload = false) {
    if (mustReload || info === null || Date.now() - infoLoadedAt > INFO_MAX_AGE_MS) {
      infoLoadedAt = Date.now();
      const pending = call("/v1/client-info");
      pending.catch(() => { if (info === pending) info = null; });
      info = pending;
    }
    return info;
  }

  // The gateway counts and logs its searches. The box reports searches of an engine that it reaches directly.
  const isGateway = (info) => /\/engine$/.test(info.engine_host);
  const engineKey = (info) => info.engine_public_key || info.engine_key;
  // The gateway and Meilisearch use the same protocol. Meilisearch's keys are tokens with two dots; Typesense's have none.
  const isTypesense = (info) => !isGateway(info) && engineKey(info).split(".").length !== 3;

  const originHeaders = () => ({ "X-Search-Channel": "box", "X-Search-Page": location.pathname });

  function meilisearchRequest(info, { query, limit, offset, sort, facets, filters, selected, sections, suggestions, fields, isRecorded }) {
    const gateway = isGateway(info);
    const conditions = gateway ? conditionsOf(selected) : [];
    if (filters) conditions.push(filters);
    const host = gateway ? `${BASE}/engine` : info.engine_host;
    return [`${host}/indexes/${encodeURIComponent(info.index)}/search`, {
      method: "POST",
      headers: {
        "Content-Type": "application/json", Authorization: `Bearer ${engineKey(info)}`,
        ...(gateway && { ...originHeaders(), "X-Search-Session": session, "Meili-Include-Metadata": "true" }),
        ...(gateway && !isRecorded && { "X-Search-Analytics": "false" }),
      },
      body: JSON.stringify({
        q: query, limit, offset, attributesToRetrieve: ["id", ...fields],
        attributesToHighlight: ["title", "content"], attributesToCrop: ["content"], cropLength: 28, highlightPreTag: MARK_START, highlightPostTag: MARK_END,
        ...(conditions.length && { filter: conditions }), ...(gateway && sort.length && { sort }), ...(gateway && facets.length && { facets }),
        ...(gateway && sections && limit && { sections }), ...(gateway && suggestions && { suggestions }),
      }),
    }];
  }

  const readMeilisearch = (response) => ({
    total: response.estimatedTotalHits ?? response.totalHits ?? response.hits.length,
    facets: response.facetDistribution ?? {},
    queryId: response.metadata?.queryUid,
    matched: response.metadata?.matched,
    corrected: response.metadata?.corrected_query,
    redirect: response.redirect,
    notice: response.notice,
    answer: response.answer,
    links: response.no_results_links,
    suggestions: response.suggestions ?? [],
    hits: response.hits.map(({ _formatted: formatted = {}, sections = [], ...hit }) => ({
      ...hit, title: formatted.title || hit.title || hit.url,
      snippet: (formatted.content || "").includes(MARK_START) ? formatted.content : hit.excerpt || formatted.content || "",
      sections: sections.map(({ _formatted: { title, content }, ...section }) => ({ ...section, title, snippet: content })),
    })),
  });

  function typesenseRequest(info, { query, limit, offset, filters, fields }) {
    return [`${info.engine_host}/multi_search?x-typesense-api-key=${encodeURIComponent(engineKey(info))}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ searches: [{
        collection: info.index, q: query || "*", query_by: "title,excerpt,content", query_by_weights: "4,2,1", limit, offset,
        include_fields: ["_id", "content", ...fields].join(), highlight_fields: "title,content", highlight_affix_num_tokens: 12,
        highlight_start_tag: MARK_START, highlight_end_tag: MARK_END, ...(filters && { filter_by: filters }),
      }] }),
    }];
  }

  function readTypesense(response) {
    const [result] = response.results;
    return {
      total: result.found,
      facets: {},
      suggestions: [],
      hits: result.hits.map(({ document: { content = "", _id: id, ...fields }, highlight = {} }) => ({
        ...fields, id, title: highlight.title?.value || highlight.title?.snippet || fields.title || fields.url,
        snippet: highlight.content?.snippet || fields.excerpt || content.slice(0, 160),
      })),
    };
  }

  let unreportedSearches = 0; // Searches of the engine to report. The keystrokes of one query count once.
  let lastCounted = { query: "", at: 0 };

  function countSearch(query) {
    const text = query.toLowerCase();
    const isSame = lastCounted.query && (text.startsWith(lastCounted.query) || lastCounted.query.startsWith(text)) && Date.now() - lastCounted.at < SAME_SEARCH_MS;
    if (!isSame) unreportedSearches += 1;
    lastCounted = { query: text, at: Date.now() };
  }

  async function search(request, signal, mayRetry = true) {
    const site = await clientInfo();
    if (!site.active) {
      info = null; // Search may be turned on again while the page is open.
      throw new SearchError("paused");
    }
    const typesense = isTypesense(site);
    const [url, options] = (typesense ? typesenseRequest : meilisearchRequest)(site, request);
    let { status, body } = await load(url, options, signal);
    if (status === 200 && body?.results?.[0]?.error) status = body.results[0].code; // Typesense reports errors like this.
    // The engine runs canceled searches, too.
    if (!isGateway(site) && request.query && (status === 200 || signal?.aborted)) countSearch(request.query);
    if (status === 200 && body) {
      const response = (typesense ? readTypesense : readMeilisearch)(body);
      for (const item of response.hits.flatMap((hit) => [hit, ...(hit.sections ?? [])])) {
        item.marked = { title: item.title, snippet: item.snippet };
        item.title = withoutMarks(item.title);
        item.snippet = withoutMarks(item.snippet);
      }
      return { ...response, query: request.query, isLogged: isGateway(site), canRefine: isGateway(site) };
    }
    if (mayRetry && (status === 401 || status === 403)) {
      await clientInfo(true); // The engine's key expired, or was revoked while the site was paused.
      return search(request, signal, false);
    }
    throw errorOf(status, body, request);
  }

  let popular = null;
  let popularLoadedAt = 0;

  // Popular queries come from a search, so that the browser has a connection, and permission to use it, before the
  // first keystroke.
  function findPopular() {
    if (popular === null || Date.now() - popularLoadedAt > RESPONSE_MAX_AGE_MS) {
      popularLoadedAt = Date.now();
      const request = { query: "", offset: 0, limit: 0, sort: [], facets: [], selected: {}, filters: "", fields: [], suggestions: MAX_SUGGESTIONS, isRecorded: false };
      popular = usesGateway().then((isAvailable) => (isAvailable ? search(request) : { suggestions: [] }))
        .then(({ suggestions }) => suggestions.filter(({ kind }) => kind === "query").map(({ text }) => String(text)), () => []);
    }
    return popular;
  }

  const reports = [];

  const post = (path, body, headers) =>
    call(path, { method: "POST", keepalive: true, headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body) });

  async function reportUsage() {
    const index = (await clientInfo()).index;
    while (unreportedSearches > 0) {
      const count = Math.min(unreportedSearches, MAX_REPORTED_SEARCHES);
      unreportedSearches -= count;
      reports.push({ id: randomText(), body: { operation: "search", count, index } });
    }
    for (const report of reports.splice(0)) {
      // If the response is lost, the report is sent again with the same ID and counted once.
      post("/v1/report-usage", report.body, { "Idempotency-Key": report.id }).catch((error) => {
        if (error.reason === "away" && reports.length < 20) reports.push(report);
      });
    }
  }

  // Analytics requests may fail without the visitor noticing.
  function log(query, total) {
    const entry = { query, results_count: total, session_id: session, timestamp: new Date().toISOString() };
    post("/api/v1/search-log", entry, originHeaders()).catch(() => {});
    reportSearches();
  }

  const reportSearches = () => { reportUsage().catch(() => {}); };

  function click(query, queryId, { id, site }, position, anchor) {
    post("/api/v1/click", { query_id: queryId, query, id, site_id: site?.id, position, anchor, session_id: session }, originHeaders()).catch(() => {});
  }

  // The key of the site's recent searches in local storage. The name of the index contains the site's ID.
  const storageKey = async () => `site-search:${new URL(BASE).host}:${/^\D*\d+/.exec((await clientInfo()).index)?.[0] ?? ""}`;

  const usesGateway = async () => isGateway(await clientInfo());

  return { clientInfo, usesGateway, search, findPopular, log, reportSearches, click, storageKey, session, lastDuration: () => lastDuration };
}

// --- Recent searches on the device, if the page turns them on. Storage may be blocked, full, or contain anything.

const recent = {
  async read(service) {
    try {
      const stored = JSON.parse(localStorage.getItem(await service.storageKey()));
      return Array.isArray(stored) ? stored.filter((text) => typeof text === "string" && text).slice(0, MAX_RECENT) : [];
    } catch {
      return [];
    }
  },
  async add(service, query) {
    const stored = await recent.read(service);
    const texts = [query, ...stored.filter((text) => text !== query)].slice(0, MAX_RECENT);
    await service.storageKey().then((key) => localStorage.setItem(key, JSON.stringify(texts))).catch(() => {});
  },
  clear: (service) => service.storageKey().then((key) => localStorage.removeItem(key)).catch(() => {}),
};

// Restores the typed text when the visitor comes back to a page. The history entry keeps it. Frameworks may overwrite the
// entry, so the script keeps a copy until the page is loaded again.
const typedText = {
  texts: new Map(),
  returnedTo: "",
  save(text) {
    typedText.texts.set(location.href, text);
    const state = history.state !== null && typeof history.state === "object" ? history.state : {};
    history.replaceState({ ...state, siteSearch: { ...state.siteSearch, text } }, "");
  },
  read: () => history.state?.siteSearch?.text ?? (typedText.returnedTo === location.href ? typedText.texts.get(location.href) ?? "" : ""),
};
addEventListener("popstate", () => { typedText.returnedTo = location.href; });

// --- The box.

function parseNumber(value, min, max, fallback) {
  const number = Number.parseInt(value, 10);
  return Number.isNaN(number) ? fallback : Math.min(max, Math.max(min, number));
}

// "a, b" -> ["a", "b"]; undefined -> undefined
const parseNames = (value) => (value === undefined ? undefined : String(value).split(",").map((name) => name.trim()).filter(Boolean));

// Without a warning, a misspelled attribute would do nothing.
const ATTRIBUTE_NAMES = new Set("key target mode shortcut placeholder limit min filters context sections group show fields jump resultsUrl facets sort analytics recent lang theme".split(" "));
const NUMBERS = ["limit", "min", "sections"];

function checkAttributes(attributes) {
  const attributeName = (name) => `data-${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  for (const [name, value] of Object.entries(attributes)) {
    if (!ATTRIBUTE_NAMES.has(name)) console.warn(`Site search: the attribute ${attributeName(name)} is unknown.`);
    else if (NUMBERS.includes(name) && !/^\s*\d+\s*$/.test(value)) console.warn(`Site search: ${attributeName(name)}="${value}" is not a number.`);
  }
}

const settingsOf = (options) => ({
  key: options.key || "",
  placeholder: options.placeholder || "",
  limit: parseNumber(options.limit, 1, 20, 8),
  min: parseNumber(options.min, 1, 200, 1),
  sections: parseNumber(options.sections, 0, 5, 3),
  jump: String(options.jump) === "true",
  context: parseNames(options.context) ?? [],
  group: options.group || "",
  analytics: String(options.analytics) !== "false",
  lang: options.lang || "",
  theme: ["light", "dark", "auto"].includes(options.theme) ? options.theme : "",
  show: parseNames(options.show) ?? ["breadcrumb", "image", "date"],
  fields: parseNames(options.fields) ?? [],
  mode: options.mode === "modal" ? "modal" : "inline",
  facets: parseNames(options.facets),
  sort: parseNames(options.sort),
  shortcut: String(options.shortcut) !== "false",
  recent: String(options.recent) === "true",
  resultsUrl: options.resultsUrl || "",
  filters: options.filters || "",
  texts: options.texts ?? {},
  clientInfo: options.clientInfo,
  transform: options.transform,
  onSelect: options.onSelect,
  renderHit: options.renderHit,
});

// If a function of the page throws, the box uses the fallback.
function callPageCode(name, callback, fallback) {
  try {
    return callback();
  } catch (error) {
    console.error(`Site search: ${name} failed.`, error);
    return fallback;
  }
}

// --- Results in the page's own markup. Documents contribute only text, never elements, scripts, or unsafe attributes.

const ELEMENTS = /^(article|b|bdi|br|cite|code|dd|del|dfn|div|dl|dt|em|figcaption|figure|h[2-6]|header|footer|hr|i|img|ins|kbd|li|mark|ol|p|pre|q|s|samp|section|small|span|strong|sub|sup|time|u|ul|wbr)$/;
const ATTRIBUTES = /^(alt|class|datetime|dir|height|lang|loading|part|role|src|title|width|aria-[a-z]+|data-[\w-]+)$/;
const VOID = /^(br|hr|img|wbr)$/;
const TEMPLATE_FIELD = /\{\{(\{?)([#/]?)\s*([^{}#/\s]+)\s*\}?\}\}/;
const PLACEHOLDER = `\uE002${NONCE}`;
const ENTITIES = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&amp;": "&" };

function makeSafeElement(name, attributes) {
  if (!ELEMENTS.test(name)) throw new TypeError(`<${name}> is not allowed in a result.`);
  const values = {};
  for (const [key, value] of attributes) {
    if (!ATTRIBUTES.test(key)) throw new TypeError(`The attribute ${key} is not allowed in a result.`);
    const url = key === "src" && parseUrl(value);
    if (url !== null) values[key] = url ? url.href : value;
  }
  // `src` is set last, because an image starts to load as soon as it is set.
  const { src, ...otherValues } = values;
  return make(name, src ? { ...otherValues, src } : otherValues);
}

function nodesOf(value) {
  if (value instanceof Node) return [value];
  if (Array.isArray(value)) return value.flatMap(nodesOf);
  if (value === null || value === undefined || typeof value === "boolean") return [];
  if (typeof value === "function" || String(value).startsWith("[object ")) throw new TypeError("A result needs texts or elements.");
  return markedNodes(value);
}

// A tagged template with its own parser, since the page's Trusted Types may forbid the browser's.
function html(strings, ...values) {
  const remaining = values.values();
  const decode = (text) => text.replace(/&(?:lt|gt|quot|amp);/g, (entity) => ENTITIES[entity]);
  const fillAttribute = (text) => decode(text).split(PLACEHOLDER).flatMap((part, index) => (index ? [withoutMarks(remaining.next().value), part] : part)).join("");
  const openElements = [document.createDocumentFragment()];
  const markup = /<!--[^]*?-->|<(\/?)([a-z][\w-]*)((?:\s+[^\s=>"'/]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+))?)*)\s*\/?>|[^<]+|</gi;
  for (const [whole, closes, tag, attributes] of strings.join(PLACEHOLDER).matchAll(markup)) {
    const name = tag?.toLowerCase();
    if (closes) {
      if (openElements.pop().localName !== name) throw new TypeError(`${whole} has no start tag.`);
    } else if (name) {
      const attributePairs = [...attributes.matchAll(/([^\s=>"'/]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?/g)];
      const element = makeSafeElement(name, attributePairs.map(([, key, ...texts]) => [key, fillAttribute(texts.find((text) => text !== undefined) ?? "")]));
      openElements.at(-1).append(element);
      if (!VOID.test(name)) openElements.push(element);
    } else if (whole.startsWith("<")) {
      if (whole === "<" || whole.includes(PLACEHOLDER)) throw new TypeError("Write &lt; for <. Names and comments can't contain values.");
    } else {
      openElements.at(-1).append(...whole.split(PLACEHOLDER).flatMap((part, index) => [...(index ? nodesOf(remaining.next().value) : []), decode(part)]));
    }
  }
  return openElements[0];
}

// Returns the text of a field for templates; "" if it is missing, false, or an object.
function fieldText(hit, name) {
  const values = [Object.hasOwn(hit, name) ? hit[name] : []].flat().filter((value) => value !== false && value !== null && typeof value !== "object");
  return withoutMarks(values.join(", "));
}

// Fills in a <template>: {{field}}, {{{field}}} with marked matches, and {{#field}}…{{/field}} unless the field is empty.
function fillTemplate(nodes, hit) {
  let skipped = "";
  const fill = (text) => {
    const [first, ...parts] = text.split(TEMPLATE_FIELD);
    let filled = skipped ? "" : first;
    for (let index = 0; index < parts.length; index += 4) {
      const [isMarked, sign, name, after] = parts.slice(index, index + 4);
      if (sign === "#") skipped ||= fieldText(hit, name) ? "" : name;
      else if (sign) skipped = skipped === name ? "" : skipped;
      else if (!skipped) filled += isMarked && Object.hasOwn(hit.marked, name) ? hit.marked[name] : fieldText(hit, name);
      if (!skipped) filled += after;
    }
    return filled;
  };
  return [...nodes].flatMap((node) => {
    if (node instanceof Text) return markedNodes(fill(node.data));
    if (!(node instanceof Element) || skipped) return [];
    const element = makeSafeElement(node.localName, [...node.attributes].map(({ name, value }) => [name, withoutMarks(fillText(value, hit))]));
    element.append(...fillTemplate(node.childNodes, hit));
    return [element];
  });
}

const fillText = (text, hit) => fillTemplate([document.createTextNode(text)], hit).map((node) => node.textContent ?? node).join("");

function makeCore(BASE, settings, host, onSelected) {
  const service = serviceOf(BASE, settings.key, settings.clientInfo);
  const pageLanguage = host.closest("[lang]")?.lang || document.documentElement.lang;
  const language = languageOf(BASE, settings.lang || pageLanguage || "en", settings.texts);
  // Results are in the language of the page, which may differ from the language of the box.
  const pageLang = { lang: pageLanguage, dir: "auto" };

  const hitTemplate = () => host.querySelector("template[data-site-search-hit]") ?? document.querySelector("template[data-site-search-hit]");

  // Returns the fields to request, including those that the page's template uses.
  function fieldsOf() {
    const defaults = ["title", "url", "excerpt", "author", "date", "version", "breadcrumbs", "image", "section", settings.group, ...settings.fields].filter(Boolean);
    const template = settings.renderHit ? null : hitTemplate();
    const templateFields = template ? new XMLSerializer().serializeToString(template.content).split(TEMPLATE_FIELD).filter((name, index) => index % 4 === 3) : [];
    return [...new Set([...defaults, ...templateFields])];
  }

  const emit = (type, detail, cancelable = false) =>
    host.dispatchEvent(new CustomEvent(`site-search:${type}`, { detail, bubbles: true, cancelable }));

  // Returns the values that results must share with the page. They are read for each search because the page may change.
  const context = () => Object.fromEntries(settings.context.map((field) => [field, pageValues(field)]).filter(([, values]) => values.length));

  const currentFilters = () => {
    const conditions = conditionsOf(context());
    return conditions.length && settings.filters ? `(${settings.filters}) AND ${conditions.join(" AND ")}` : conditions.join(" AND ") || settings.filters;
  };

  async function searchHereOrElsewhere(request, signal) {
    const values = Object.values(context()).flat();
    if (!values.length || !(await service.usesGateway())) return service.search(request, signal);
    try {
      const response = await service.search({ ...request, filters: currentFilters(), mayFail: true }, signal);
      if (response.total) return response;
    } catch (error) {
      if (error.reason !== "refused") throw error; // Perhaps no document has the field.
    }
    const response = await service.search(request, signal);
    return response.total ? { ...response, missing: values.join(", ") } : response;
  }

  async function search(query, { offset = 0, limit = settings.limit, sort = [], facets = [], filters = {}, suggestions = 0, isRecorded = true, signal } = {}) {
    const { sections } = settings;
    const request = { query, offset, limit, sort, facets, selected: filters, filters: settings.filters, sections, suggestions, fields: fieldsOf(), isRecorded: isRecorded && settings.analytics };
    const response = await searchHereOrElsewhere(request, signal);
    if (!settings.transform) return response;
    const hits = callPageCode("transform", () => {
      const transformed = settings.transform(response.hits.map((hit) => ({ ...hit })));
      if (!Array.isArray(transformed) || !transformed.every((hit) => hit instanceof Object)) throw new TypeError("transform must return hits");
      return transformed;
    }, response.hits);
    // If `transform` removes a hit, its answer is removed, too.
    return { ...response, hits, answer: hits.some((hit) => hit.id === response.answer?.id) && response.answer };
  }

  const remember = (query) => { if (settings.recent && query) recent.add(service, query); };

  function select(event, hit, position, { query, queryId }) {
    typedText.save(query);
    const isAllowed = emit("select", { query, hit, position }, true);
    const isConfirmed = callPageCode("onSelect", () => settings.onSelect?.(hit), true) !== false;
    if (!isAllowed || !isConfirmed) event.preventDefault();
    if (hit.id !== undefined && settings.analytics) service.click(query, queryId, hit, position, (hit.section ?? hit.answer)?.anchor || undefined);
    remember(query);
    onSelected(event);
  }

  // Texts that `transform` changed have no marks.
  const markedText = (hit, field) => {
    const marks = hit.marked?.[field];
    return marks !== undefined && withoutMarks(marks) === hit[field] ? marks : withoutMarks(hit[field]);
  };
  const fieldNodes = (hit, field) => markedNodes(markedText(hit, field));

  // Returns the nodes that the page's template or renderHit makes; [] if it has neither.
  function customNodes(hit) {
    const markedHit = { ...hit, marked: { title: markedText(hit, "title"), snippet: markedText(hit, "snippet") } };
    if (settings.renderHit) return callPageCode("renderHit", () => nodesOf(settings.renderHit(markedHit, html)), []);
    const template = hitTemplate();
    return template ? callPageCode("the template of results", () => fillTemplate(template.content.childNodes, markedHit), []) : [];
  }

  // Makes the element of a hit or a section. `hit` is the detail of the event "select".
  function makeLink(attributes, url, content, hit, position, response) {
    const link = make(url ? "a" : "div", { ...attributes, ...(url && { href: url.href }) }, ...content);
    link.addEventListener("click", (event) => select(event, hit, position, response));
    link.addEventListener("auxclick", (event) => { if (event.button === 1) select(event, hit, position, response); });
    return link;
  }

  const spanOf = (name, nodes) => (nodes.length ? [make("span", { class: name, part: name, ...pageLang }, ...nodes)] : []);

  function imageOf(hit) {
    const url = settings.show.includes("image") && parseUrl(hit.image);
    if (!url) return [];
    const image = make("img", { class: "image", part: "image", alt: "", loading: "lazy", decoding: "async", referrerpolicy: "no-referrer", src: url.href });
    image.addEventListener("error", () => image.remove());
    return [image];
  }

  // Shows where a page is in its site: its breadcrumbs, its section, or else its URL.
  function breadcrumbOf(hit, url) {
    const crumbs = [hit.breadcrumbs ?? []].flat().map(String);
    if (crumbs.at(-1) === hit.title) crumbs.pop();
    const section = settings.group === "section" ? "" : [hit.section ?? []].flat().find((name) => typeof name === "string" && name !== hit.title);
    if (crumbs.length || section) return [make("span", { part: "breadcrumb", ...pageLang }, crumbs.join(" › ") || section)];
    return url ? [make("span", { class: "where", part: "breadcrumb" }, make("bdi", { dir: "ltr" }, readablePath(url)))] : [];
  }

  // The file type, the breadcrumb, and the date.
  function metaOf(hit, url) {
    const date = settings.show.includes("date") ? language.formatDate(hit.date) : "";
    const kind = fileKind(url);
    const nodes = [
      ...(kind ? [make("span", { class: "kind" }, kind)] : []),
      ...(settings.show.includes("breadcrumb") ? breadcrumbOf(hit, url) : []),
      ...(date ? [make("time", { part: "date", datetime: hit.date, ...language.boxLang }, date)] : []),
    ];
    return nodes.length ? [make("span", { class: "meta" }, ...nodes.flatMap((node, index) => (index ? [" · ", node] : [node])))] : [];
  }

  const sectionsOf = (hit) => [hit.sections ?? []].flat().filter((section) => parseUrl(section?.url));

  // The hit's version, if the open page has another one, and its site in a collection.
  function badges({ version, site }) {
    const pageVersions = pageValues("version").map((value) => value.toLowerCase());
    const versions = [version ?? []].flat().map(String);
    const isOther = pageVersions.length && versions.length && !versions.some((value) => pageVersions.includes(value.toLowerCase()));
    return [...(isOther ? [" ", ...spanOf("badge", [versions.join(", ")])] : []), ...(site?.label ? [" ", ...spanOf("site", [site.label])] : [])];
  }

  // If a hit has sections, they show the snippets.
  function makeHit(hit, position, response) {
    const hasSections = sectionsOf(hit).length > 0;
    const url = parseUrl(hit.url);
    const target = url && settings.jump && !hasSections ? passageUrl(url, hit.marked?.snippet) : url;
    const custom = hit.id === undefined ? [] : customNodes(hit); // Suggested titles have no ID and no custom markup.
    const snippet = hit.snippet && !hasSections ? fieldNodes(hit, "snippet") : [];
    const content = custom.length ? custom : [
      icon(fileKind(url) ? "file" : "page"), ...imageOf(hit), ...spanOf("title", [...fieldNodes(hit, "title"), ...badges(hit)]),
      ...(hit.id === undefined ? [] : metaOf(hit, url)), ...spanOf("snippet", snippet),
    ];
    return makeLink({ class: "hit", part: "hit" }, target, content, hit, position, response);
  }

  const makeSections = (hit, position, response, maxSnippets = MAX_SNIPPETS) => sectionsOf(hit).map((section, index) => {
    const path = [section.path ?? []].flat().map((title) => `${title} › `);
    const title = [...(path.length ? [make("span", { class: "path" }, ...path)] : []), ...fieldNodes(section, "title")];
    const sectionHit = { ...hit, url: section.url, section };
    const snippet = section.snippet && index < maxSnippets ? fieldNodes(section, "snippet") : [];
    const content = [icon("section"), ...spanOf("title", title), ...spanOf("snippet", snippet)];
    return makeLink({ class: "hit section", part: "section" }, parseUrl(section.url), content, sectionHit, position, response);
  });

  // Makes a figure with the quoted passage and a link to it. Selecting it reports the hit that it is from.
  function makeAnswer({ answer, hits, ...response }) {
    const { id, text, url: pageUrl, anchor } = answer || {};
    if (!text || !parseUrl(pageUrl)) return [];
    const url = anchor ? `${pageUrl.split("#")[0]}#${anchor}` : pageUrl;
    const linkUrl = parseUrl(url);
    const index = hits.findIndex((hit) => hit.id === id);
    const title = withoutMarks(hits[index]?.title ?? linkUrl.host + linkUrl.pathname);
    const content = [
      make("blockquote", { part: "quote", cite: linkUrl.href, ...pageLang }, withoutMarks(text)),
      make("cite", { class: "title", part: "title", ...pageLang }, icon(fileKind(linkUrl) ? "file" : "page"), title),
    ];
    const target = settings.jump && !anchor ? passageUrl(linkUrl, MARK_START + text) : linkUrl;
    const answerHit = { title, ...hits[index], id, url, answer };
    return [make("figure", { class: "answer", part: "answer", "aria-label": language.text("answer"), ...language.langOf("answer") },
      make("p", { class: "meta", "aria-hidden": "true" }, icon("answer"), language.text("answer")),
      makeLink({ class: "hit" }, target, content, answerHit, index < 0 ? null : index + 1, response))];
  }

  // The owner's notices and links.
  const linkTo = (attributes, { text, url }) => {
    const parsedUrl = parseUrl(url);
    return make(parsedUrl ? "a" : "span", { ...attributes, ...pageLang, ...(parsedUrl && { href: parsedUrl.href }) }, String(text));
  };
  const notice = ({ notice: content }) => (content?.text ? [linkTo({ part: "notice" }, content)] : []);
  const links = (response) => [response.links ?? []].flat().filter((link) => link?.text && parseUrl(link.url)).map((link) => linkTo({ class: "hit link", part: "link" }, link));

  function summary({ total, missing, matched, corrected }) {
    return [
      ...(missing ? [...language.textNodes("elsewhere", { context: missing }), " "] : []),
      ...(corrected ? [...language.textNodes("corrected", { q: corrected }), " "] : []),
      ...(matched === "some" ? [...language.textNodes("some"), " "] : []),
      ...(total === 1 ? language.textNodes("one") : language.textNodes("many", { n: language.formatNumber(total) })),
    ];
  }

  function redirect(response, query) {
    const target = parseUrl(response?.redirect);
    if (!target) return false;
    remember(query);
    location.assign(target.href);
    return true;
  }

  // Wraps a field with its icon and its clear button.
  function makeField(input) {
    const clearButton = make("button", { type: "button", class: "wipe", tabindex: "-1" }, icon("clear")); // Tab skips it, like the browser's own clear button.
    const nameButton = () => setAttributes(clearButton, { ...language.langOf("clear"), "aria-label": language.text("clear") });
    nameButton();
    language.ready.then(nameButton);
    clearButton.addEventListener("click", () => {
      input.value = "";
      input.dispatchEvent(new Event("input"));
      input.focus();
    });
    return make("div", { class: "field" }, icon("search"), input, clearButton);
  }

  // Searches of the engine count toward the plan, so they are reported even without analytics.
  const log = ({ query, total, isLogged }) => {
    if (!isLogged) (settings.analytics ? service.log(query, total) : service.reportSearches());
  };

  return {
    ...language, element: host, settings, service, pageLang, make, icon, applyStyles, wrap, openDialog, search, currentFilters, summary, notice, links, redirect,
    findPopular: service.findPopular,
    makeField, makeHit, makeSections, makeAnswer, remember, log, emit,
  };
}

// --- The full view.

// Returns the page's element for the full view. If it has an ID as its value, it is only for the box with that ID.
const resultsContainer = (host) => [...document.querySelectorAll("[data-site-search-results]")].find(({ dataset }) => !dataset.siteSearchResults || dataset.siteSearchResults === host?.id) ?? null;

const showFull = async (BASE, core, options, isWanted = () => true) => {
  const [{ showResults }] = await Promise.all([import(`${BASE}/widget-results.js`), core.ready]);
  return isWanted() ? showResults(core, options) : null;
};

// Whether the page has elements for lists of related pages.
const hasRelated = () => document.querySelector("[data-site-search=related]");

// If the URL contains a search, the full view opens with the page.
const isAddressed = (settings) => !settings.resultsUrl && new URLSearchParams(location.search).has("q");

// --- The boxes of the page

// All copies of this script share the list, so that a keyboard shortcut opens only one box.
const boxes = (window[Symbol.for("site-search.boxes")] ??= []);
const HAS_POPOVER = typeof HTMLElement.prototype.showPopover === "function";

// Runs searches while the visitor types: the first at once, then at most one per SEARCH_INTERVAL_MS, and always one after
// the last key. Two can run at the same time, since a response may take longer than the interval; on a slow connection, one.
function makeScheduler(lastDuration, run) {
  const running = new Set();
  let isRequested = false;
  let lastStart = -Infinity;
  let timer = 0;

  const age = ({ at }) => performance.now() - at;

  function next() {
    clearTimeout(timer);
    if (!isRequested) return;
    const [oldest] = running;
    const isSlow = lastDuration() > SLOW_CONNECTION_MS || (oldest && age(oldest) > SLOW_CONNECTION_MS);
    const remaining = lastStart + (isSlow ? SLOW_CONNECTION_MS : SEARCH_INTERVAL_MS) - performance.now();
    if (oldest && age(oldest) > STALE_MS) oldest.control.abort();
    else if (remaining <= 0 && running.size < (isSlow ? 1 : 2)) return void start();
    timer = setTimeout(next, remaining > 0 ? remaining : SEARCH_INTERVAL_MS);
  }

  async function start() {
    const current = { at: performance.now(), control: new AbortController() };
    isRequested = false;
    lastStart = current.at;
    const older = [...running];
    running.add(current);
    await run(current.control.signal, () => older.forEach(({ control }) => control.abort()));
    running.delete(current);
    next();
  }

  return {
    request() {
      isRequested = true;
      next();
    },
    stop() {
      isRequested = false;
      clearTimeout(timer);
      for (const { control } of running) control.abort();
    },
  };
}

function build(BASE, host, settings) {
  if (!settings.key.startsWith("svc_pub_")) throw new Error("Site search: use only a public key (svc_pub_…).");
  boxes.find((box) => box.host === host)?.unmount();
  const isModal = settings.mode === "modal";
  const core = makeCore(BASE, settings, host, (event) => selected(event));
  const { service, text, textNodes, boxLang } = core;
  const mounted = new AbortController();
  const on = (target, type, listener, options) => target.addEventListener(type, listener, { signal: mounted.signal, ...options });

  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  applyStyles(root);
  const originalTheme = host.dataset.theme;
  if (settings.theme) host.dataset.theme = settings.theme;

  const label = core.langOf("label");
  const input = make("input", {
    type: "search", part: "input", role: "combobox", "aria-label": text("label"), placeholder: settings.placeholder || text("label"),
    maxlength: "170", // At most 512 bytes in any script, which is the engines' limit.
    "aria-expanded": "false", "aria-controls": "results", "aria-autocomplete": "list", "aria-haspopup": "listbox",
    autocomplete: "off", autocapitalize: "off", spellcheck: "false", enterkeyhint: "search", ...label,
  });
  // Outside of the panel, because screen readers don't announce a live region that appears together with its text.
  const announcer = make("div", { class: "live", role: "status" });
  const status = make("p", { class: "status", part: "status" });
  const notice = make("p", { class: "notice", hidden: "" });
  const list = make("div", { id: "results", role: "listbox", tabindex: "-1", hidden: "" });
  const foot = make("div", { class: "foot", hidden: "" });
  const panel = make("div", { class: isModal ? "panel" : "panel afloat", part: "panel", tabindex: "-1", hidden: "", ...boxLang }, notice, status, list, foot);
  if (!isModal) core.input = input;
  const form = make("form", { role: "search", ...boxLang }, core.makeField(input), announcer);
  const close = make("button", { type: "button", class: "close" }, make("kbd", { "aria-hidden": "true", dir: "ltr" }), icon("clear"));
  const labelElements = () => {
    setAttributes(list, { ...core.langOf("results"), "aria-label": text("results") });
    setAttributes(close, { ...core.langOf("close"), "aria-label": `${text("close")} (Esc)` }); // The button shows the key.
  };
  labelElements();
  core.ready.then(labelElements);
  let dialog = null;
  let opener = null;
  if (isModal) {
    on(close, "click", () => dialog.close());
    form.append(close);
    dialog = make("dialog", { part: "dialog", "aria-label": text("label"), ...label }, form, panel);
    opener = make("button", { type: "button", class: "open", part: "input", "aria-haspopup": "dialog", ...label }, icon("search"),
      make("span", {}, settings.placeholder || text("label")));
    if (settings.shortcut) {
      opener.append(make("kbd", { "aria-hidden": "true", dir: "ltr" }, /Mac|iP/.test(navigator.platform) ? "⌘K" : "Ctrl K"));
      opener.setAttribute("aria-keyshortcuts", "/ Control+K Meta+K");
    }
    root.replaceChildren(wrap(opener, dialog));
  } else {
    if (settings.shortcut) input.setAttribute("aria-keyshortcuts", "/");
    if (HAS_POPOVER) panel.setAttribute("popover", "manual");
    root.replaceChildren(wrap(form, panel));
  }

  const cachedResponses = new Map();
  let latestSearch = 0; // Number of the latest search.
  let shownSearch = 0; // Number of the search whose results are shown.
  let currentSearch = {}; // Query and promise of the latest search, until it ends.
  let selectedOption = null;
  let isPicked = false; // Whether the visitor selected it, rather than the box.
  let waitTimer = 0;
  let searchEventTimer = 0;
  let intentTimer = 0;
  let announcementTimer = 0;
  let fullView = null; // The full view, once it has been opened.
  let intent = null; // The query whose results are shown, until it is logged.

  const options = () => [...list.querySelectorAll("[role=option]")];

  // --- Position of the panel: in the top layer, which nothing clips, below or above the input

  function positionPanel() {
    if (isModal || panel.hidden) return;
    undoPageZoom(panel);
    const field = input.getBoundingClientRect();
    const width = document.documentElement.clientWidth;
    const { offsetTop = 0, height = innerHeight } = window.visualViewport ?? {};
    const panelWidth = Math.min(Math.max(field.width, MIN_WIDTH), width - 2 * WINDOW_MARGIN);
    const start = getComputedStyle(host).direction === "rtl" ? field.right - panelWidth : field.left;
    const left = Math.max(WINDOW_MARGIN, Math.min(start, width - panelWidth - WINDOW_MARGIN));
    const below = offsetTop + height - field.bottom - 2 * WINDOW_MARGIN;
    const above = field.top - offsetTop - 2 * WINDOW_MARGIN;
    const isAbove = below < 220 && above > below;
    const maxHeight = Math.max(120, Math.min(640, 0.8 * height, isAbove ? above : below));
    Object.assign(panel.style, { width: `${panelWidth}px`, maxHeight: `${maxHeight}px`, left: `${left}px`, top: "0" });
    const top = isAbove ? field.top - 6 - panel.offsetHeight : field.bottom + 6;
    panel.style.top = `${top}px`;
    // Without a top layer, positions may be relative to an ancestor.
    const actual = panel.getBoundingClientRect();
    if (Math.abs(actual.top - top) > 1 || Math.abs(actual.left - left) > 1) {
      Object.assign(panel.style, { left: `${2 * left - actual.left}px`, top: `${2 * top - actual.top}px` });
    }
  }

  function togglePanel(mustOpen) {
    panel.hidden = !mustOpen;
    if (HAS_POPOVER && !isModal && host.isConnected && panel.matches(":popover-open") !== mustOpen) panel.togglePopover(mustOpen);
    input.setAttribute("aria-expanded", String(mustOpen && !list.hidden));
    if (!mustOpen) {
      selectOption(null);
      clearTimeout(announcementTimer);
      announcer.replaceChildren();
    }
    positionPanel();
  }

  function hide() {
    if (isModal) dialog.close();
    else togglePanel(false);
  }

  // The first result is selected right away, except on touch screens, where the keyboard would hide it.
  const selectsFirst = () => !matchMedia("(pointer: coarse)").matches;

  function selectOption(option) {
    selectedOption?.setAttribute("aria-selected", "false");
    selectedOption = option;
    isPicked = false;
    if (!option) {
      input.removeAttribute("aria-activedescendant");
      return;
    }
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", option.id);
  }

  function announce(nodes) {
    clearTimeout(announcementTimer);
    announcementTimer = setTimeout(() => announcer.replaceChildren(...nodes.map((node) => node.cloneNode?.(true) ?? node)), ANNOUNCEMENT_DELAY_MS);
  }

  const selectFirst = () => { if (selectsFirst()) selectOption([...list.querySelectorAll("#answer, #hit-0")].find(isVisible)); };
  const isVisible = (element) => element.getClientRects().length > 0; // The page's styles may hide parts.

  // A message without results has a picture above it.
  function showPanel(message, rows, footer, notices = [], answers = [], picture = "") {
    const isAlone = Boolean(picture && !rows.length);
    selectOption(null);
    notice.replaceChildren(...notices);
    notice.hidden = !notices.length;
    status.replaceChildren(...(isAlone ? [icon(picture)] : []), ...message);
    status.classList.toggle("alone", isAlone);
    status.hidden = !message.length;
    list.replaceChildren(...rows);
    list.hidden = !rows.length;
    list.removeAttribute("aria-busy");
    foot.replaceChildren(...footer, keyLegend());
    foot.hidden = !rows.length && !isModal;
    list.scrollTop = 0;
    togglePanel(Boolean(isModal || message.length || rows.length));
    fitRows();
    if (message.length) announce([...notices.map((node) => `${node.textContent} `), ...message, ...answers.filter(isVisible).map((node) => `. ${text("answer")}: ${node.querySelector("blockquote").textContent}`)]);
  }

  const keyElements = (caps) => caps.map((cap) => make("kbd", { dir: "ltr", "aria-hidden": "true" }, cap));

  // The legend of keys, for wide screens. Screen readers know the keys from the roles.
  function keyLegend() {
    const legend = [["navigate", "↑", "↓"], ["open", "↵"], ["close", "Esc"]];
    return make("p", { class: "keys", "aria-hidden": "true" }, ...legend.map(([key, ...caps]) => make("span", core.langOf(key), ...keyElements(caps), text(key))));
  }

  // Ends the visible list with a complete row.
  function fitRows() {
    list.style.maxHeight = "";
    if (list.scrollHeight <= list.clientHeight) return;
    const { top, bottom } = list.getBoundingClientRect();
    const ends = options().map((option) => option.getBoundingClientRect().bottom + list.scrollTop).filter((end) => end <= bottom);
    if (ends.length) list.style.maxHeight = `${ends.at(-1) - top}px`;
  }

  function fitPanel() {
    positionPanel();
    if (!panel.hidden) fitRows();
  }

  const showMessage = (key, picture) => showPanel(textNodes(key), [], [], [], [], picture);

  function fail(error) {
    if (!(error instanceof SearchError)) console.error(error);
    const reason = error instanceof SearchError ? error.reason : "away";
    showMessage(reason, "problem");
    core.emit("error", { reason });
  }

  // --- Content of the panel: recent searches, suggestions, results

  const asOption = (element, id) => {
    setAttributes(element, { role: "option", id, "aria-selected": "false", tabindex: "-1" });
    if (element.firstChild?.localName === "svg") element.append(icon("go", "go"));
    return element;
  };

  function searchOption(query, id, iconName = "search") {
    const option = asOption(make("div", { class: "hit query", part: "hit", ...core.pageLang }, icon(iconName), make("span", {}, query)), id);
    on(option, "click", () => {
      input.value = query;
      setDirection();
      core.remember(query);
      startSearch();
    });
    return option;
  }

  // Makes a group of queries under a heading.
  function searchGroup(key, queries) {
    const heading = make("p", { class: "status heading", "aria-hidden": "true", ...core.langOf(key) }, text(key));
    return queries.length ? [group(key, [heading, ...queries.map((query, index) => searchOption(query, `${key}-${index}`, key))])] : [];
  }

  const group = (key, children) => make("div", { role: "group", "aria-label": text(key), ...core.langOf(key) }, ...children);

  // Returns suggested queries, for one line above the results, and titles of other pages, for below them.
  function suggestionGroups({ query, hits, suggestions }) {
    const resultUrls = new Set(hits.map((hit) => parseUrl(hit.url)?.href));
    const [queries, titles] = [[], []];
    suggestions.forEach((suggestion, position) => {
      const id = `suggestion-${position}`;
      const words = String(suggestion.text ?? "");
      const url = parseUrl(suggestion.url);
      if (suggestion.kind === "title") {
        if (url && !resultUrls.has(url.href)) titles.push(asOption(core.makeHit({ title: words, url: suggestion.url, snippet: "" }, null, { query }), id));
      } else if (words.toLowerCase() !== query.toLowerCase()) {
        const option = searchOption(words, id);
        option.classList.add("chip");
        queries.push(option);
      }
    });
    const [above, below] = [queries, titles].map((options) => (options.length ? [group("suggestions", options)] : []));
    for (const line of above) line.classList.add("chips");
    return [above, below];
  }

  function moreElement() {
    const url = settings.resultsUrl && resultsUrlFor(input.value.trim());
    const isLink = url && !resultsContainer(host);
    const more = make(isLink ? "a" : "button",
      { class: "more", part: "more", "aria-keyshortcuts": "Shift+Enter", ...core.langOf("more"), ...(isLink ? { href: url.href } : { type: "button" }) },
      text("more"), ...keyElements(["⇧", "↵"]));
    on(more, "click", (event) => {
      logIntent();
      if (!isLink) openFullView(input.value.trim());
      else if (!event.ctrlKey && !event.metaKey && !event.shiftKey) hide();
    });
    return more;
  }

  function showResponse(response) {
    const { query, hits } = response;
    const [queries, titles] = suggestionGroups(response);
    const above = core.notice(response);
    if (!hits.length) {
      const links = core.links(response).map((link, index) => {
        on(link, "click", selected);
        return asOption(link, `link-${index}`);
      });
      showPanel(textNodes("none", { q: query }), [...queries, ...titles, ...links, ...searchGroup("popular", response.popular)], [], above, [], "none");
      return;
    }
    const groups = new Map();
    hits.forEach((hit, position) => {
      const value = [hit[settings.group]].flat()[0] ?? "";
      const name = String(value.label ?? value);
      groups.set(name, [...(groups.get(name) ?? []),
        asOption(core.makeHit(hit, position + 1, response), `hit-${position}`),
        ...core.makeSections(hit, position + 1, response, 1).map((section, index) => asOption(section, `hit-${position}-${index}`))]);
    });
    const rows = [...groups].flatMap(([name, rows]) => (name
      ? [make("div", { role: "group", "aria-label": name, ...core.pageLang }, make("p", { class: "heading", part: "group", "data-by": settings.group, "aria-hidden": "true" }, name), ...rows)]
      : rows));
    const answers = core.makeAnswer(response);
    for (const figure of answers) {
      figure.setAttribute("role", "group");
      asOption(figure.lastChild, "answer");
    }
    hideCommonBreadcrumb(rows);
    showPanel(core.summary(response), [...queries, ...answers, ...rows, ...titles], [moreElement()], above, answers);
    selectFirst();
  }

  // A breadcrumb that all results share does not help to choose one.
  function hideCommonBreadcrumb(rows) {
    const breadcrumbs = rows.map((row) => row.querySelector("[part=breadcrumb]")).filter(Boolean);
    if (breadcrumbs.length < 2 || new Set(breadcrumbs.map((crumb) => crumb.textContent)).size > 1) return;
    for (const crumb of breadcrumbs) {
      (crumb.nextSibling ?? crumb.previousSibling)?.remove(); // The separator.
      (crumb.parentElement.childNodes.length > 1 ? crumb : crumb.parentElement).remove();
    }
  }

  async function showStart() {
    await core.ready;
    const isEmpty = () => !input.value.trim() && !mounted.signal.aborted && root.activeElement === input;
    const queries = settings.recent ? await recent.read(service) : [];
    const clear = make("button", { type: "button", ...core.langOf("clear") }, text("clear"));
    on(clear, "click", async () => {
      await recent.clear(service);
      input.focus();
      showStart();
    });
    const showQueries = (popular) => {
      const otherQueries = popular.filter((query) => !queries.includes(query));
      showPanel([], [...searchGroup("recent", queries), ...searchGroup("popular", otherQueries)], queries.length ? [clear] : []);
    };
    if (isEmpty()) showQueries([]);
    const popular = await service.findPopular();
    if (isEmpty() && !isPicked && popular.length) showQueries(popular);
  }

  // --- Searching

  function logIntent() {
    clearTimeout(intentTimer);
    if (intent === null) return;
    const { query, total } = intent;
    intent = null;
    core.log({ query, total });
  }

  function selected(event) {
    logIntent();
    if (event.button || event.ctrlKey || event.metaKey || event.shiftKey) return; // The link opens in another tab or window.
    hide();
  }

  const setDirection = () => { input.dir = input.value ? "auto" : label.dir; };

  function cachedResponse(query) {
    const cached = cachedResponses.get(query + core.currentFilters());
    return cached && Date.now() - cached.at < RESPONSE_MAX_AGE_MS ? cached : null;
  }

  async function find(query, signal) {
    const cached = cachedResponse(query);
    if (cached) return cached;
    const response = await core.search(query, { signal, suggestions: MAX_SUGGESTIONS });
    const popular = response.hits.length ? [] : await service.findPopular();
    const entry = { ...response, popular: popular.filter((other) => other !== query), at: Date.now() };
    cachedResponses.set(query + core.currentFilters(), entry);
    if (cachedResponses.size > MAX_CACHED_RESPONSES) cachedResponses.delete(cachedResponses.keys().next().value);
    return entry;
  }

  // Responses of older searches are shown until a newer response arrives.
  const scheduler = makeScheduler(service.lastDuration, async (signal, cancelOlder) => {
    const query = input.value.trim();
    const number = ++latestSearch;
    currentSearch = { query, answer: find(query, signal) };
    try {
      const response = await currentSearch.answer;
      if (number < shownSearch || signal.aborted) return;
      cancelOlder();
      showSearch(number, query, response);
    } catch (error) {
      if (number !== latestSearch || signal.aborted) return;
      stopWaiting();
      fail(error);
    } finally {
      if (currentSearch.query === query) currentSearch = {};
    }
  });

  function showSearch(number, query, response) {
    shownSearch = number;
    stopWaiting();
    showResponse(response);
    if (query !== input.value.trim()) return waitForResults(); // A search for the current text follows.
    searchEventTimer = setTimeout(() => core.emit("search", { query, total: response.total, hits: response.hits }), SEARCH_EVENT_DELAY_MS);
    if (response.isLogged) return;
    intent = { query, total: response.total };
    intentTimer = setTimeout(logIntent, INTENT_DELAY_MS);
  }

  function waitForResults() {
    waitTimer ||= setTimeout(() => {
      if (list.hidden) showMessage("wait");
      else list.setAttribute("aria-busy", "true");
      status.replaceChildren(...textNodes("wait"));
    }, WAIT_MESSAGE_DELAY_MS);
  }

  function stopWaiting() {
    clearTimeout(waitTimer);
    waitTimer = 0;
  }

  function startSearch() {
    for (const timer of [intentTimer, searchEventTimer]) clearTimeout(timer);
    const query = input.value.trim();
    if (query.length < settings.min) {
      cancelSearches();
      logIntent();
      showPanel([], [], []);
      showStart();
      return;
    }
    intent = null; // The visitor typed on, so the previous query was not the intended one.
    const cached = cachedResponse(query);
    if (cached) {
      cancelSearches();
      showSearch(latestSearch, query, cached);
      return;
    }
    waitForResults();
    scheduler.request();
  }

  // Responses that arrive later are ignored.
  function cancelSearches() {
    latestSearch += 1;
    scheduler.stop();
    stopWaiting();
    clearTimeout(searchEventTimer);
  }

  // --- The full view: in the page's element for it, at data-results-url, or in a dialog

  function resultsUrlFor(query) {
    const url = parseUrl(settings.resultsUrl, document.baseURI);
    if (!url) console.error("Site search: data-results-url must be a web URL.");
    else url.searchParams.set("q", query);
    return url;
  }

  // Enter follows the owner's redirect, opens the first result, or else opens the full view.
  async function submitQuery(query, modifiers) {
    const isRunning = currentSearch.query === query;
    if (!isRunning) cancelSearches();
    const number = latestSearch;
    waitForResults();
    // If the search fails, the full view shows the error.
    const response = await (isRunning ? currentSearch.answer : find(query)).catch(() => null);
    if (number !== latestSearch) return;
    stopWaiting();
    if (core.redirect(response, query)) return;
    if (response && selectsFirst()) {
      showSearch(number, query, response);
      if (selectedOption) return void click(selectedOption, modifiers);
    }
    openFullView(query);
  }

  const click = (option, modifiers) => option.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, composed: true, ...modifiers }));

  async function openFullView(query) {
    cancelSearches();
    const number = latestSearch;
    core.remember(query);
    const container = resultsContainer(host);
    const url = !container && settings.resultsUrl && resultsUrlFor(query);
    if (url) {
      location.assign(url.href);
      return;
    }
    const slow = setTimeout(() => showMessage("wait"), WAIT_MESSAGE_DELAY_MS);
    try {
      fullView = await showFull(BASE, core, { container, query }, () => {
        clearTimeout(slow);
        if (number !== latestSearch) return false;
        hide();
        return true;
      }) ?? fullView;
    } catch (error) {
      clearTimeout(slow);
      console.error(error);
      if (number === latestSearch) fail(new SearchError("away"));
    }
  }

  // --- Keys, focus, and the rest of the page

  on(input, "input", () => {
    setDirection();
    startSearch();
  });
  function prepareAsk(info) {
    if (info.ask) import(`${BASE}/widget-ask.js`).then((module) => module.addAsk(BASE, core, { input, panel, reopen, fitPanel }), console.error);
  }

  function reopen() {
    service.clientInfo().then(prepareAsk, () => {}); // Loaded early. A failure is shown with the first search.
    if (!list.hidden || status.hasChildNodes()) {
      togglePanel(true);
      selectFirst();
    } else if (!input.value.trim()) showStart();
    else if (!latestSearch) startSearch(); // The field had a text before it got the focus.
  }
  on(input, "focus", reopen);
  on(input, "click", () => { if (panel.hidden) reopen(); }); // The field may still have the focus, for example after Escape.
  on(input, "keydown", (event) => {
    if (event.isComposing || event.keyCode === 229) return;
    if ((event.key === "ArrowDown" || event.key === "ArrowUp") && options().length) {
      event.preventDefault();
      togglePanel(true);
      const all = options().filter(isVisible);
      const step = event.key === "ArrowDown" ? 1 : -1;
      const index = selectedOption ? all.indexOf(selectedOption) + step : step > 0 ? 0 : -1;
      selectOption(all.at(index % all.length));
      isPicked = true;
    } else if (event.key === "Enter") {
      event.preventDefault();
      const query = input.value.trim();
      const { ctrlKey, metaKey, shiftKey } = event;
      if (isPicked && !panel.hidden) click(selectedOption, { ctrlKey, metaKey, shiftKey });
      else if (query.length >= settings.min) {
        logIntent();
        if (shiftKey) openFullView(query);
        else submitQuery(query, { ctrlKey, metaKey });
      }
    }
  });
  on(form, "submit", (event) => event.preventDefault());
  on(root, "keydown", (event) => {
    // In Safari, the last key of a composition arrives after its end, with the code 229.
    if (event.key !== "Escape" || event.isComposing || event.keyCode === 229 || (!isModal && panel.hidden)) return;
    event.preventDefault();
    if (!isModal) input.focus(); // Which opens the panel.
    hide();
    event.stopPropagation();
  });
  // The page can't see that the target of these keys is a field, and might take them for its shortcuts.
  for (const type of ["keydown", "keypress", "keyup"]) {
    on(root, type, (event) => { if (event.key?.length === 1 && !event.ctrlKey && !event.metaKey) event.stopPropagation(); });
  }
  // The field keeps the focus while a mouse button is pressed on a result.
  on(panel, "mousedown", (event) => event.preventDefault());
  on(host, "focusout", (event) => {
    if (host.contains(event.relatedTarget)) return;
    logIntent();
    if (!isModal) togglePanel(false);
  });
  on(document, "pointerdown", (event) => { if (!isModal && !event.composedPath().includes(host)) togglePanel(false); });
  on(window, "pagehide", logIntent);
  on(window, "pageshow", (event) => { if (event.persisted) hide(); });
  on(document, "visibilitychange", () => { if (document.visibilityState === "hidden") logIntent(); });
  on(document, "scroll", () => requestAnimationFrame(positionPanel), { capture: true, passive: true });
  for (const target of [window, window.visualViewport]) {
    if (target) on(target, "resize", () => requestAnimationFrame(fitPanel));
  }

  function focusBox() {
    if (isModal && !dialog.open) {
      openDialog(dialog);
      input.select();
    }
    input.focus();
  }
  if (isModal) {
    on(opener, "click", focusBox);
    on(dialog, "close", () => {
      logIntent();
      togglePanel(false);
    });
    on(dialog, "pointerdown", (event) => {
      const area = dialog.getBoundingClientRect();
      const isInside = event.clientX >= area.left && event.clientX <= area.right && event.clientY >= area.top && event.clientY <= area.bottom;
      if (event.target === dialog && !isInside) dialog.close();
    });
    on(dialog, "wheel", (event) => { if (event.target === dialog) event.preventDefault(); }, { passive: false });
  }

  function unmount() {
    if (mounted.signal.aborted) return;
    logIntent();
    cancelSearches();
    for (const timer of [intentTimer, announcementTimer]) clearTimeout(timer);
    hide();
    mounted.abort();
    fullView?.unmount();
    boxes.splice(boxes.indexOf(box), 1);
    if (originalTheme === undefined) delete host.dataset.theme;
    else host.dataset.theme = originalTheme;
    root.adoptedStyleSheets = [];
    root.replaceChildren(make("slot")); // Shows the element's original content.
  }

  // A later page may add the element for the full view.
  let container = null;
  function showInContainer() {
    if (resultsContainer(host) === container) return;
    container = resultsContainer(host);
    if (container) showAddressedView();
  }
  const showAddressedView = () =>
    showFull(BASE, core, { container }, () => !mounted.signal.aborted).then((opened) => { fullView = opened ?? fullView; }, console.error);
  showInContainer();
  if (!container && isAddressed(settings)) showAddressedView();
  else if (!isAddressed(settings)) {
    input.value = String(typedText.read());
    setDirection();
  }

  const box = { host, isModal, settings, fillPlace: showInContainer, start: focusBox, toggle: () => (dialog?.open ? dialog.close() : focusBox()), isOpen: () => Boolean(dialog?.open), unmount };
  boxes.push(box);
  return box;
}

// --- Keyboard shortcuts of the page

const isTyping = (event) => {
  const target = event.composedPath()[0];
  return target instanceof Element && (target.matches("input, textarea, select, [role=textbox], [role=combobox], [role=searchbox]") || target.isContentEditable || isClosedHost(target));
};

// A closed shadow root hides its focused field: the event's target is the host, an element that usually can't have the focus.
const isClosedHost = (target) => !target.shadowRoot && target === document.activeElement
  && (target.localName.includes("-") || (target.matches(SHADOW_HOSTS) && target.tabIndex < 0 && !target.hasAttribute("tabindex")));
const SHADOW_HOSTS = "article, aside, blockquote, div, footer, h1, h2, h3, h4, h5, h6, header, main, nav, p, section, span";

function handleShortcut(event) {
  if (event.defaultPrevented || event.isComposing || event.repeat || event.altKey) return;
  const isCommand = event.ctrlKey !== event.metaKey && !event.shiftKey && event.key.toLowerCase() === "k";
  if (!isCommand && (event.key !== "/" || event.ctrlKey || event.metaKey)) return;
  const candidates = boxes
    .filter((box) => box.settings.shortcut && box.host.isConnected && (!isCommand || box.isModal))
    .sort((first, second) => (first.host.compareDocumentPosition(second.host) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1));
  const open = candidates.find((box) => box.isOpen());
  if (open ? !isCommand : (!isCommand && isTyping(event)) || document.querySelector(":modal")) return;
  const box = open ?? candidates.find((candidate) => candidate.host.getClientRects().length) ?? candidates[0];
  if (!box) return;
  event.preventDefault();
  box.toggle();
}

// --- The script's attributes, and window.SiteSearch

function attach(script) {
  const BASE = new URL(script.src).href.replace(/\/widget\.js.*$/, "");
  let attributes = { ...script.dataset };
  const selector = attributes.target || "#site-search";

  window.SiteSearch ??= {
    mount(element, options = {}) {
      if (!(element instanceof Element)) throw new TypeError("SiteSearch.mount needs an element.");
      const { unmount } = build(BASE, element, settingsOf({ key: attributes.key, ...options }));
      return { unmount };
    },
  };

  // Frameworks run the scripts again for each page. The first run stays in charge and gets the newest attributes.
  const updaters = (window[Symbol.for("site-search.followers")] ??= new Map());
  const name = `${BASE} ${selector}`;
  if (updaters.has(name)) {
    updaters.get(name)(attributes);
    return;
  }

  let settings = settingsOf(attributes);
  const removedHosts = new WeakSet(); // Elements that the page removed and may insert again.
  let box = null;
  let filledContainer = null; // The element for the full view on a page without a box.
  let view = null;

  function fillPlace(container) {
    view?.unmount();
    view = null;
    filledContainer = container;
    showFull(BASE, makeCore(BASE, settings, container, () => {}), { container }, () => filledContainer === container)
      .then((opened) => { view = opened ?? view; }, console.error);
  }

  // Looks up the elements again, since frameworks replace them without loading a page.
  function attachBox() {
    if (hasRelated()) import(`${BASE}/widget-related.js`).then((module) => module.showRelated(BASE, settings), console.error);
    if (box && !box.host.isConnected) {
      removedHosts.add(box.host);
      box.unmount();
      box = null;
    }
    if (boxes.includes(box)) return box.fillPlace();
    const host = document.querySelector(selector);
    const container = resultsContainer(host);
    if (host && (!host.shadowRoot || removedHosts.delete(host))) box = build(BASE, host, settings);
    else if (!host && container && container !== filledContainer) fillPlace(container);
  }

  function updateAttributes(newAttributes) {
    if (JSON.stringify(newAttributes) === JSON.stringify(attributes)) return;
    attributes = newAttributes;
    settings = settingsOf(attributes);
    if (boxes.includes(box)) box = build(BASE, box.host, settings);
  }

  function start() {
    const host = document.querySelector(selector);
    if (!attributes.key) {
      if (host && !host.shadowRoot) console.warn("Site search: add data-key to the script, or pass a key to SiteSearch.mount.");
      return;
    }
    if (!attributes.key.startsWith("svc_pub_")) {
      console.error("Site search: use only a public key (svc_pub_…).");
      return;
    }
    if (!host && !resultsContainer(host) && !hasRelated()) console.error(`Site search: the page has no element ${selector}.`);
    updaters.set(name, updateAttributes);
    checkAttributes(attributes);
    attachBox();
    let timer = 0;
    new MutationObserver(() => {
      if (box && !box.host.isConnected) attachBox();
      else timer ||= setTimeout(() => {
        timer = 0;
        attachBox();
      }, FOLLOW_DELAY_MS);
    }).observe(document, { childList: true, subtree: true });
  }

  if (document.readyState === "loading") addEventListener("DOMContentLoaded", start, { once: true });
  else start();
}

// A module runs once, however many script elements refer to it, and can't see which one loaded it.
const isBoxScript = (script) => /\/widget\.js$/.test(script.src.split(/[?#]/)[0]);
const scripts = document.currentScript ? [document.currentScript] : [...document.querySelectorAll("script[type=module]")].filter(isBoxScript);
if (scripts.length && scripts.every((script) => script.src)) {
  scripts.forEach(attach);
  const handlerName = Symbol.for("site-search.keys"); // One handler per page, however often the script is loaded.
  if (!window[handlerName]) addEventListener("keydown", (window[handlerName] = handleShortcut));
} else {
  console.error('Site search: load the box with <script src="…/widget.js" data-key="svc_pub_…">.');
}
})();
