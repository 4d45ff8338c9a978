/* A search box for any page:
 *
 *   <div id="site-search"></div>
 *   <script src="https://…/widget.js" data-key="svc_pub_…" async></script>
 *
 * The box follows pages that change without loading: where a framework puts another such element, it is there again. Or:
 *
 *   const box = SiteSearch.mount(element, { key: "svc_pub_…", onSelect: (hit) => router.push(hit.url) });
 *   box.unmount();
 *
 * docs/search-box.md lists attributes, options, events, variables and parts. What the service answers is shown as text,
 * never as HTML. Nothing is kept on the device unless data-recent="true".
 *
 * The full view is a module of its own, loaded when somebody needs it: BASE/widget-results.js exports
 *
 *   showResults(core, { container, query }) → { unmount() }
 *
 * `container` is the page's <div data-site-search-results>; without one, the view covers the page, in place of the
 * panel. `query` is undefined where the address says what to show. The module tells what `core` gives.
 */
(() => {
"use strict";

const PACE_MS = 120; // Between the starts of two searches while keys come.
const SLOW_LINE_MS = 300; // A response that takes longer comes over a slow line: one request at a time, and not more often.
const STALE_MS = 2000; // After which a search for an older text is given up, so that the latest text has its turn.
const SETTLED_MS = 300; // Before the event "search": results between two keystrokes are not what the visitor looked for.
const PAUSE_MS = 1500; // After which results that stand are what was looked for.
const SLOW_MS = 250; // After which somebody is told to wait.
const ANNOUNCED_MS = 500; // A screen reader is told what stands, not each keystroke's result.
const TIMEOUT_MS = 15_000;
const INTENT_MS = 30_000; // Within which a text that continues another is the same search.
const INFO_MS = 12 * 3600 * 1000; // Engine keys live for a day; they are renewed well before.
const ANSWERS_MS = 5 * 60 * 1000;
const KEPT_ANSWERS = 50;
const REPORT_MAX = 10; // Most searches of one report with a public key.
const FOLLOW_MS = 50; // Between a change of the page and the search for its element.
const RECENT = 5;
const SUGGESTED = 4;
const SNIPPETS = 2; // Most snippets of one page in the full view; the panel shows one.
const LEAST_WIDTH = 340;
const EDGE = 8; // Between the panel and the window.

const random = () => Array.from(crypto.getRandomValues(new Uint8Array(15)), (byte) => (byte % 36).toString(36)).join("");

// Marks around matches. No document knows them, so none can pretend to match.
const NONCE = random().slice(0, 6);
const OPEN = `\uE000${NONCE}`;
const CLOSE = `\uE001${NONCE}`;

// The one text that is seen before anything happens. The others are a module of its own, loaded for the language of the page.
const LABELS = Object.fromEntries("en Search|de Suche|fr Rechercher|es Buscar|it Cerca|pt Pesquisar|nl Zoeken|sv Sök|da Søg|no Søk|fi Haku|hu Keresés|ro Căutare|pl Szukaj|cs Hledat|tr Ara|id Cari|ca Cerca|eu Bilatu|et Otsi|ga Cuardaigh|lt Ieškoti|eo Serĉi|el Αναζήτηση|ru Поиск|sr Претрага|ar بحث|fa جستجو|hi खोजें|ne खोज्नुहोस्|hy Որոնել|ta தேடு|yi זוכן|ja 検索|zh 搜索|ko 검색|th ค้นหา|vi Tìm kiếm".split("|").map((each) => each.split(/ (.*)/)));
const NAMES = "results one many none wait paused spent away refused recent clear suggestions more close elsewhere corrected some popular answer navigate open";
const ENGLISH = "Results|1 result|{n} results|Nothing matches “{q}”.|Searching…|Search is switched off at the moment.|Search is busy at the moment. Please try again later.|Search cannot be reached at the moment.|Search is not available.|Recent searches|Clear|Suggestions|All results|Close|Nothing in {context}, but elsewhere:|Showing results for “{q}”:|No page has all these words; with some of them:|Popular searches|Answer|Navigate|Open";
const ALSO = { nb: "no", nn: "no" };

// Light and dark.
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
  .told { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
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
  .wipe svg { width: 18px; height: 18px; }
  .wipe:hover { color: var(--text); background: var(--chosen); }
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
  dialog > form { padding: 8px 12px 8px 4px; border-bottom: 1px solid var(--rule); }
  dialog > form:dir(rtl) { padding: 8px 4px 8px 12px; }
  dialog > form > .field > input { border-color: transparent; font-size: 18px; }
  dialog > form > .field > input:focus-visible { outline: none; }
  dialog .wipe { display: none; }
  .close { display: grid; place-items: center; min-width: 40px; padding: 4px; color: var(--soft); border: 0; }
  .close:hover { color: var(--text); background: var(--chosen); }
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
  .hit > .go { position: absolute; inset-block: 0; inset-inline-end: 10px; margin-block: auto; width: 18px; padding-inline-start: 0; color: var(--accent); visibility: hidden; }
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
  .title, .snippet, .meta { text-align: start; }
  .image { grid-area: 1 / 3 / span 9; width: 80px; height: 60px; object-fit: cover; border: 1px solid var(--rule); border-radius: 6px; }
  .image ~ .go { display: none; }
  .query { padding-block: 8px; text-align: start; }
  .chips { display: flex; flex-wrap: wrap; gap: 6px; padding: 4px 12px 8px; }
  .chip.query { display: flex; align-items: center; gap: 6px; padding: 3px 10px; font-size: 14px; color: var(--text); border: 1px solid var(--rule); border-radius: 99px; }
  .chip.query > .icon { width: 15px; height: 15px; margin: 0; }
  .chip.query[aria-selected="true"] { padding-inline-end: 10px; border-color: var(--accent); box-shadow: none; }
  .chip > .go { display: none; }
  .section { position: relative; margin-inline-start: 21px; padding: 6px 12px; }
  .section::before { content: ""; position: absolute; inset: 0 auto; inset-inline-start: 0; border-inline-start: 2px solid var(--rule); }
  .section[aria-selected="true"]::before { border-color: transparent; }
  .hit:has(+ .section):not(.section) { padding-bottom: 5px; }
  .section + .hit:not(.section) { margin-top: 4px; }
  .section:has(> .icon) { grid-template-columns: 16px minmax(0, 1fr) auto; column-gap: 10px; }
  .section > .icon { width: 16px; height: 16px; margin-top: 3px; }
  #results .section > .snippet { -webkit-line-clamp: 1; }
  .section .title { font-size: 15px; font-weight: 500; color: var(--text); }
  .answer { margin: 8px 0 4px; background: var(--tint); border: 1px solid var(--rule); border-radius: var(--radius); overflow: hidden; }
  blockquote { margin: 0; padding-inline-start: 10px; border-inline-start: 3px solid var(--accent); text-align: start; }
  .answer > .meta { display: flex; align-items: center; gap: 8px; margin: 0; padding: 10px 12px 0; font-weight: 600; }
  .answer > .meta svg { width: 18px; height: 18px; color: var(--accent); }
  .answer > .hit { display: block; padding: 6px 12px 10px; }
  .answer > .hit .title { color: var(--accent); }
  .answer .title { margin-top: 6px; font-size: 14px; font-style: normal; }
  .answer cite svg { width: 16px; height: 16px; margin-inline-end: 6px; vertical-align: -3px; }
  .path { font-weight: 400; color: var(--soft); }
  .badge { display: inline-block; padding: 0 6px; font-size: 12px; font-weight: 400; color: var(--text); border: 1px solid var(--line); border-radius: 4px; }
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
  .more kbd:first-of-type { margin-inline-start: 4px; }
  .more kbd { font-weight: 400; }
  .more:hover, .foot button:hover { text-decoration: underline; text-underline-offset: 3px; }
  @media (pointer: coarse) { .open kbd { display: none; } }
  @media (forced-colors: active) { .hit[aria-selected="true"] { outline: 2px solid Highlight; outline-offset: -2px; } mark { background: Mark; color: MarkText; } }
  @media print { .open, form, .afloat, dialog { display: none !important; } }
`;

// Icons by Lucide (https://lucide.dev), under the ISC License.
const SHEET = "M6 22a2 2 0 0 1-2-2V4a2 2 0 0 1 2-2h8a2.4 2.4 0 0 1 1.7.7l3.6 3.6A2.4 2.4 0 0 1 20 8v12a2 2 0 0 1-2 2zM14 2v5a1 1 0 0 0 1 1h5";
const ICONS = {
  page: `${SHEET}M10 9H8M16 13H8M16 17H8`,
  file: `${SHEET}M12 18v-6M9 15l3 3 3-3`,
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

// An element, since a page's Content-Security-Policy may forbid images.
function icon(name, looks = "icon") {
  const NAMESPACE = "http://www.w3.org/2000/svg";
  const made = document.createElementNS(NAMESPACE, "svg");
  for (const [key, value] of Object.entries({ class: looks, viewBox: "0 0 24 24", "aria-hidden": "true" })) made.setAttribute(key, value);
  made.append(document.createElementNS(NAMESPACE, "path"));
  made.firstChild.setAttribute("d", ICONS[name]);
  return made;
}

// --- Elements and texts.

function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function marked(value) {
  const [before, ...parts] = String(value).split(OPEN);
  return [before, ...parts.flatMap((part) => {
    const [match, ...rest] = part.split(CLOSE);
    return [make("mark", { part: "mark" }, match), rest.join("")];
  })];
}

const plain = (value) => String(value ?? "").replaceAll(OPEN, "").replaceAll(CLOSE, "");

function addressOf(url, base = location.origin) {
  if (typeof url !== "string" || !url) return null;
  try {
    const address = new URL(url, base);
    return /^https?:$/.test(address.protocol) ? address : null;
  } catch {
    return null;
  }
}

const quoted = (value) => `"${String(value).replace(/["\\]/g, "\\$&")}"`;
const conditionsOf = (chosen) => Object.entries(chosen).map(([field, values]) => `${quoted(field)} IN [${values.map(quoted).join(", ")}]`);

// What the page says of itself, as the crawler reads it.
function saidBy(field) {
  const names = [`site-search:${field}`, { version: "docsearch:version", lang: "docsearch:language" }[field]];
  const metas = [...document.querySelectorAll("meta[name]")];
  const said = names.map((name) => metas.filter((meta) => meta.name.toLowerCase() === name).map((meta) => meta.content.trim()).filter(Boolean));
  return said.find((values) => values.length) ?? [field === "lang" && document.documentElement.lang].filter(Boolean);
}

/** The address in words: its host, unless it is the page's own, and its folders. */
function readable({ host, pathname }) {
  const names = pathname.replace(/\/(index\.\w+)?$/, "").split("/").filter(Boolean).map((name) => {
    try {
      return decodeURIComponent(name);
    } catch {
      return name; // Not UTF-8.
    }
  });
  return [...(host === location.host && names.length ? [] : [host]), ...names].join(" › ");
}

const fileKind = (address) => /\.(pdf|docx?|pptx?|xlsx?|od[pst]|epub)$/i.exec(address?.pathname ?? "")?.[1].toUpperCase() ?? "";

// The address of the passage that a snippet is from: the sentence, or line, around its first match.
function passageOf(address, snippet) {
  const sentence = String(snippet).split(/[.!?]\s|[…\n\t。！？]/).find((part) => part.includes(OPEN));
  if (!sentence || address.hash.includes(":~:")) return address;
  const there = new URL(address);
  there.hash += `:~:text=${encodeURIComponent(plain(sentence).trim()).replaceAll("-", "%2D")}`;
  return there;
}

const sheets = new Map();

function dress(root, ...more) {
  root.adoptedStyleSheets = [STYLE, ...more].map((css) => {
    if (!sheets.has(css)) {
      const sheet = new CSSStyleSheet(); // A page's Content-Security-Policy has no say in it.
      sheet.replaceSync(css);
      sheets.set(css, sheet);
    }
    return sheets.get(css);
  });
}

// What surrounds all: of the page's rules, those of its elements end here.
const wrap = (...children) => make("div", { class: "box" }, ...children);

// The page's `zoom` is no concern of what lies above it.
const unzoom = (element) => { element.style.zoom = 1 / (element.getRootNode().host.currentCSSZoom ?? 1); };

const covering = new Set(); // Dialogs over the page.
let before = [];

// Opens a dialog. The page behind it stands still until the last one is closed.
function showAbove(dialog) {
  const { style, clientWidth } = document.documentElement;
  if (!covering.size) {
    before = ["overflow", "scrollbar-gutter"].map((name) => [name, style.getPropertyValue(name), style.getPropertyPriority(name)]);
    if (innerWidth > clientWidth) style.setProperty("scrollbar-gutter", "stable", "important");
    style.setProperty("overflow", "hidden", "important");
  }
  covering.add(dialog);
  dialog.addEventListener("close", () => {
    if (dialog.open) return; // Again.
    covering.delete(dialog);
    if (!covering.size) for (const [name, value, priority] of before) style.setProperty(name, value, priority);
  }, { once: true });
  unzoom(dialog);
  dialog.showModal();
}

function directionOf(language) {
  try {
    return /^(Arab|Hebr|Syrc|Thaa|Nkoo|Adlm|Rohg)$/.test(new Intl.Locale(language).maximize().script) ? "rtl" : "ltr";
  } catch {
    return "ltr";
  }
}

const zipped = (names, line) => Object.fromEntries(names.split(" ").map((name, position) => [name, line.split("|")[position]]));

function languageOf(BASE, wish, given = {}) {
  const base = wish.toLowerCase().split(/[-_]/)[0];
  const known = ALSO[base] ?? base;
  const has = Object.hasOwn(LABELS, known);
  // Texts of the page's own make the box speak the language of the page.
  const language = has ? known : Object.keys(given).length ? wish : "en";
  const own = { lang: language, dir: directionOf(language) };
  const texts = {};

  const learn = (names, table) => {
    for (const [key, text] of Object.entries(zipped(names, table[language] ?? table.en))) {
      texts[key] = Object.hasOwn(given, key)
        ? { text: String(given[key]), marks: {} }
        : { text, marks: table[language] || language === "en" ? {} : { lang: "en", dir: "ltr" } };
    }
  };
  learn("label", LABELS);
  learn(NAMES, { en: ENGLISH });
  // Without them the box goes on in English.
  const ready = has && language !== "en"
    ? import(`${BASE}/widget-texts.js`).then(({ TEXTS }) => learn(NAMES, TEXTS), (error) => console.error(error))
    : Promise.resolve();

  const number = (value) => {
    try {
      return value.toLocaleString(language);
    } catch {
      return String(value);
    }
  };
  const dated = (value) => {
    if (typeof value !== "string" || Number.isNaN(Date.parse(value))) return "";
    const style = { dateStyle: "medium", timeZone: "UTC" };
    try {
      return new Intl.DateTimeFormat(language, style).format(new Date(value));
    } catch {
      return new Intl.DateTimeFormat("en", style).format(new Date(value));
    }
  };
  const text = (key, values = {}) => texts[key].text.replace(/\{(\w+)\}/g, (all, name) => values[name] ?? all);
  const spoken = (key, values = {}) => {
    const nodes = texts[key].text.split(/\{(\w+)\}/).map((part, odd) => (odd % 2 ? make("bdi", {}, String(values[part] ?? "")) : part));
    return texts[key].marks.lang ? [make("span", texts[key].marks, ...nodes)] : nodes;
  };
  return { own, learn, ready, number, dated, text, spoken, marksOf: (key) => ({ ...own, ...texts[key].marks }) };
}

// --- The service, by one key: who we are, what may be searched, what was done.

class Refusal extends Error {
  constructor(reason) {
    super(reason);
    this.reason = reason;
  }
}

const session = random();
const services = new Map();

function serviceOf(BASE, KEY, given) {
  const name = `${BASE} ${KEY}`;
  if (!services.has(name)) services.set(name, makeService(BASE, KEY, given));
  return services.get(name);
}

function makeService(BASE, KEY, given) {
  let took = 0; // Milliseconds of the last response: how fast the line is.

  async function load(address, options, signal) {
    const began = performance.now();
    const control = new AbortController();
    const timer = setTimeout(() => control.abort(), TIMEOUT_MS);
    signal?.addEventListener("abort", () => control.abort(), { once: true });
    try {
      const response = await fetch(address, { credentials: "omit", signal: control.signal, ...options });
      const body = await response.json().catch(() => null);
      took = performance.now() - began;
      return { status: response.status, body };
    } catch {
      return { status: 0, body: null };
    } finally {
      clearTimeout(timer);
    }
  }

  function refusal(status, body, wish = {}) {
    if (status === 429) return new Refusal("spent");
    if (![400, 401, 403].includes(status)) return new Refusal("away");
    if (body?.message && !wish.isTried) console.error(`Site search: ${wish.filters && /filter/.test(body.code) ? "data-filters: " : ""}${body.message}`);
    return new Refusal("refused");
  }

  async function call(path, options = {}) {
    const { status, body } = await load(BASE + path, { ...options, headers: { Authorization: `Bearer ${KEY}`, ...options.headers } });
    if (status === 200 && body) return body;
    throw refusal(status, body);
  }

  let info = given ? Promise.resolve(given) : null;
  let infoAt = Date.now();

  function clientInfo(anew = false) {
    if (anew || info === null || Date.now() - infoAt > INFO_MS) {
      infoAt = Date.now();
      const asked = call("/v1/client-info");
      asked.catch(() => { if (info === asked) info = null; });
      info = asked;
    }
    return info;
  }

  // The gateway counts and logs what it searches by itself; of an engine that is searched directly, the box tells.
  const isGateway = (known) => /\/engine$/.test(known.engine_host);
  const engineKey = (known) => known.engine_public_key || known.engine_key;
  // The gateway and Meilisearch speak the same; Meilisearch's keys are tokens of three parts, Typesense's have no dots.
  const isTypesense = (known) => !isGateway(known) && engineKey(known).split(".").length !== 3;

  const whence = () => ({ "X-Search-Channel": "box", "X-Search-Page": location.pathname });

  function meilisearchRequest(known, { query, limit, offset, sort, facets, filters, chosen, sections, suggestions, fields, isRecorded }) {
    const gateway = isGateway(known);
    const conditions = gateway ? conditionsOf(chosen) : [];
    if (filters) conditions.push(filters);
    const host = gateway ? `${BASE}/engine` : known.engine_host;
    return [`${host}/indexes/${encodeURIComponent(known.index)}/search`, {
      method: "POST",
      headers: {
        "Content-Type": "application/json", Authorization: `Bearer ${engineKey(known)}`,
        ...(gateway && { ...whence(), "X-Search-Session": session, "Meili-Include-Metadata": "true" }),
        ...(gateway && !isRecorded && { "X-Search-Analytics": "false" }),
      },
      body: JSON.stringify({
        q: query, limit, offset, attributesToRetrieve: ["id", ...fields],
        attributesToHighlight: ["title", "content"], attributesToCrop: ["content"], cropLength: 28, highlightPreTag: OPEN, highlightPostTag: CLOSE,
        ...(conditions.length && { filter: conditions }), ...(gateway && sort.length && { sort }), ...(gateway && facets.length && { facets }),
        ...(gateway && sections && limit && { sections }), ...(gateway && suggestions && { suggestions }),
      }),
    }];
  }

  const readMeilisearch = (answer) => ({
    total: answer.estimatedTotalHits ?? answer.totalHits ?? answer.hits.length,
    facets: answer.facetDistribution ?? {},
    queryId: answer.metadata?.queryUid,
    matched: answer.metadata?.matched,
    corrected: answer.metadata?.corrected_query,
    redirect: answer.redirect,
    notice: answer.notice,
    answer: answer.answer,
    links: answer.no_results_links,
    suggestions: answer.suggestions ?? [],
    hits: answer.hits.map(({ _formatted: formatted = {}, sections = [], ...hit }) => ({
      ...hit, title: formatted.title || hit.title || hit.url,
      snippet: (formatted.content || "").includes(OPEN) ? formatted.content : hit.excerpt || formatted.content || "",
      sections: sections.map(({ _formatted: { title, content }, ...section }) => ({ ...section, title, snippet: content })),
    })),
  });

  function typesenseRequest(known, { query, limit, offset, filters, fields }) {
    return [`${known.engine_host}/multi_search?x-typesense-api-key=${encodeURIComponent(engineKey(known))}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ searches: [{
        collection: known.index, q: query || "*", query_by: "title,excerpt,content", query_by_weights: "4,2,1", limit, offset,
        include_fields: ["_id", "content", ...fields].join(), highlight_fields: "title,content", highlight_affix_num_tokens: 12,
        highlight_start_tag: OPEN, highlight_end_tag: CLOSE, ...(filters && { filter_by: filters }),
      }] }),
    }];
  }

  function readTypesense(answer) {
    const [result] = answer.results;
    return {
      total: result.found,
      facets: {},
      suggestions: [],
      hits: result.hits.map(({ document: { content = "", _id: id, ...found }, highlight = {} }) => ({
        ...found, id, title: highlight.title?.value || highlight.title?.snippet || found.title || found.url,
        snippet: highlight.content?.snippet || found.excerpt || content.slice(0, 160),
      })),
    };
  }

  let searched = 0; // Searches the engine ran that no report has told of: what is typed for one query counts once.
  let counted = { query: "", at: 0 };

  function countSearch(query) {
    const text = query.toLowerCase();
    const isSame = counted.query && (text.startsWith(counted.query) || counted.query.startsWith(text)) && Date.now() - counted.at < INTENT_MS;
    if (!isSame) searched += 1;
    counted = { query: text, at: Date.now() };
  }

  async function search(wish, signal, again = true) {
    const known = await clientInfo();
    if (!known.active) {
      info = null; // It may be resumed while the page is open.
      throw new Refusal("paused");
    }
    const typesense = isTypesense(known);
    const [address, options] = (typesense ? typesenseRequest : meilisearchRequest)(known, wish);
    let { status, body } = await load(address, options, signal);
    if (status === 200 && body?.results?.[0]?.error) status = body.results[0].code; // Typesense's way to say it.
    // What nobody waits for any longer was searched all the same.
    if (!isGateway(known) && wish.query && (status === 200 || signal?.aborted)) countSearch(wish.query);
    if (status === 200 && body) {
      const answer = (typesense ? readTypesense : readMeilisearch)(body);
      for (const found of answer.hits.flatMap((hit) => [hit, ...(hit.sections ?? [])])) {
        found.marked = { title: found.title, snippet: found.snippet };
        found.title = plain(found.title);
        found.snippet = plain(found.snippet);
      }
      return { ...answer, query: wish.query, isLogged: isGateway(known), canRefine: isGateway(known) };
    }
    if (again && (status === 401 || status === 403)) {
      await clientInfo(true); // The engine's key ended: it expired, or the site was paused for a while.
      return search(wish, signal, false);
    }
    throw refusal(status, body, wish);
  }

  let popular = null;
  let popularAt = 0;

  // What others search for most. It is asked for as a search is, so that the connection, and the browser's permission
  // to use it, are there before the first keystroke.
  function findPopular() {
    if (popular === null || Date.now() - popularAt > ANSWERS_MS) {
      popularAt = Date.now();
      const wish = { query: "", offset: 0, limit: 0, sort: [], facets: [], chosen: {}, filters: "", fields: [], suggestions: SUGGESTED, isRecorded: false };
      popular = isOwn().then((isOurs) => (isOurs ? search(wish) : { suggestions: [] }))
        .then(({ suggestions }) => suggestions.filter(({ kind }) => kind === "query").map(({ text }) => String(text)), () => []);
    }
    return popular;
  }

  const reports = [];

  const tell = (path, body, headers) =>
    call(path, { method: "POST", keepalive: true, headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body) });

  async function reportUsage() {
    const index = (await clientInfo()).index;
    while (searched > 0) {
      const count = Math.min(searched, REPORT_MAX);
      searched -= count;
      reports.push({ name: random(), body: { operation: "search", count, index } });
    }
    for (const report of reports.splice(0)) {
      // Named, so that one that arrived although its answer was lost is not counted twice when it is sent again.
      tell("/v1/report-usage", report.body, { "Idempotency-Key": report.name }).catch((error) => {
        if (error.reason === "away" && reports.length < 20) reports.push(report);
      });
    }
  }

  // A lost entry of the statistics is no visitor's concern.
  function log(query, total) {
    const entry = { query, results_count: total, session_id: session, timestamp: new Date().toISOString() };
    tell("/api/v1/search-log", entry, whence()).catch(() => {});
    report();
  }

  const report = () => { reportUsage().catch(() => {}); };

  function click(query, queryId, id, position, anchor) {
    tell("/api/v1/click", { ...(queryId && { query_id: queryId }), query, id, position, anchor, session_id: session }, whence()).catch(() => {});
  }

  // Where recent searches of this site are kept; the index carries the site's number.
  const place = async () => `site-search:${new URL(BASE).host}:${/^\D*\d+/.exec((await clientInfo()).index)?.[0] ?? ""}`;

  const isOwn = async () => isGateway(await clientInfo());

  return { clientInfo, isOwn, search, findPopular, log, report, click, place, lastTook: () => took };
}

// --- What the page keeps on the device, if it wants to. Storage may be blocked, full, or hold anything.

const recent = {
  async read(service) {
    try {
      const kept = JSON.parse(localStorage.getItem(await service.place()));
      return Array.isArray(kept) ? kept.filter((text) => typeof text === "string" && text).slice(0, RECENT) : [];
    } catch {
      return [];
    }
  },
  async add(service, query) {
    const kept = await recent.read(service);
    const texts = [query, ...kept.filter((text) => text !== query)].slice(0, RECENT);
    await service.place().then((place) => localStorage.setItem(place, JSON.stringify(texts))).catch(() => {});
  },
  clear: (service) => service.place().then((place) => localStorage.removeItem(place)).catch(() => {}),
};

// What was typed on a page is there again when the visitor comes back to it. It stays in the entry of the history, which
// outlives the page; for frameworks that write over entries, also here, for as long as the page is not loaded again.
const typedText = {
  texts: new Map(),
  returnedTo: "",
  keep(text) {
    typedText.texts.set(location.href, text);
    const state = history.state !== null && typeof history.state === "object" ? history.state : {};
    history.replaceState({ ...state, siteSearch: { ...state.siteSearch, text } }, "");
  },
  read: () => history.state?.siteSearch?.text ?? (typedText.returnedTo === location.href ? typedText.texts.get(location.href) ?? "" : ""),
};
addEventListener("popstate", () => { typedText.returnedTo = location.href; });

// --- The box.

function between(value, low, high, otherwise) {
  const number = Number.parseInt(value, 10);
  return Number.isNaN(number) ? otherwise : Math.min(high, Math.max(low, number));
}

// Names separated by commas; nothing where nothing was said.
const listOf = (given) => (given === undefined ? undefined : String(given).split(",").map((name) => name.trim()).filter(Boolean));

// A misspelt attribute would silently do nothing.
const ATTRIBUTE_NAMES = new Set("key target mode shortcut placeholder limit min filters context sections group show fields jump resultsUrl facets sort analytics recent lang theme".split(" "));
const NUMBERS = ["limit", "min", "sections"];

function checkAttributes(given) {
  const asWritten = (name) => `data-${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  for (const [name, value] of Object.entries(given)) {
    if (!ATTRIBUTE_NAMES.has(name)) console.warn(`Site search: the attribute ${asWritten(name)} is unknown.`);
    else if (NUMBERS.includes(name) && !/^\s*\d+\s*$/.test(value)) console.warn(`Site search: ${asWritten(name)}="${value}" is not a number.`);
  }
}

const settingsOf = (given) => ({
  key: given.key || "",
  placeholder: given.placeholder || "",
  limit: between(given.limit, 1, 20, 8),
  min: between(given.min, 1, 200, 1),
  sections: between(given.sections, 0, 5, 3),
  jump: String(given.jump) === "true",
  context: listOf(given.context) ?? [],
  group: given.group || "",
  analytics: String(given.analytics) !== "false",
  lang: given.lang || "",
  theme: ["light", "dark", "auto"].includes(given.theme) ? given.theme : "",
  show: listOf(given.show) ?? ["breadcrumb", "image", "date"],
  fields: listOf(given.fields) ?? [],
  mode: given.mode === "modal" ? "modal" : "inline",
  facets: listOf(given.facets),
  sort: listOf(given.sort),
  shortcut: String(given.shortcut) !== "false",
  recent: String(given.recent) === "true",
  resultsUrl: given.resultsUrl || "",
  filters: given.filters || "",
  texts: given.texts ?? {},
  clientInfo: given.clientInfo,
  transform: given.transform,
  onSelect: given.onSelect,
  renderHit: given.renderHit,
});

// The page's functions may fail; the box goes on without them.
function guarded(name, work, otherwise) {
  try {
    return work();
  } catch (error) {
    console.error(`Site search: ${name} failed.`, error);
    return otherwise;
  }
}

// --- Results as the page wants them. Of a document comes text, also in attributes, and nothing that could act.

const ELEMENTS = /^(article|b|bdi|br|cite|code|dd|del|dfn|div|dl|dt|em|figcaption|figure|h[2-6]|header|footer|hr|i|img|ins|kbd|li|mark|ol|p|pre|q|s|samp|section|small|span|strong|sub|sup|time|u|ul|wbr)$/;
const ATTRIBUTES = /^(alt|class|datetime|dir|height|lang|loading|part|role|src|title|width|aria-[a-z]+|data-[\w-]+)$/;
const VOID = /^(br|hr|img|wbr)$/;
const FIELD = /\{\{(\{?)([#/]?)\s*([^{}#/\s]+)\s*\}?\}\}/;
const HOLE = `\uE002${NONCE}`;
const ENTITIES = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&amp;": "&" };

function makeHarmless(name, attributes) {
  if (!ELEMENTS.test(name)) throw new TypeError(`<${name}> cannot stand in a result.`);
  const values = {};
  for (const [key, value] of attributes) {
    if (!ATTRIBUTES.test(key)) throw new TypeError(`The attribute ${key} cannot stand in a result.`);
    const address = key === "src" && addressOf(value);
    if (address !== null) values[key] = address ? address.href : value;
  }
  // How an image is loaded is settled before its address is.
  const { src, ...others } = values;
  return make(name, src ? { ...others, src } : others);
}

function nodesOf(value) {
  if (value instanceof Node) return [value];
  if (Array.isArray(value)) return value.flatMap(nodesOf);
  if (value === null || value === undefined || typeof value === "boolean") return [];
  if (typeof value === "function" || String(value).startsWith("[object ")) throw new TypeError("A result is made of texts and elements.");
  return marked(value);
}

// A tagged template. The page's Trusted Types may forbid the browser's own parser.
function html(strings, ...values) {
  const holes = values.values();
  const read = (text) => text.replace(/&(?:lt|gt|quot|amp);/g, (entity) => ENTITIES[entity]);
  const filled = (text) => read(text).split(HOLE).flatMap((part, at) => (at ? [plain(holes.next().value), part] : part)).join("");
  const open = [document.createDocumentFragment()];
  const markup = /<!--[^]*?-->|<(\/?)([a-z][\w-]*)((?:\s+[^\s=>"'/]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+))?)*)\s*\/?>|[^<]+|</gi;
  for (const [whole, closes, tag, attributes] of strings.join(HOLE).matchAll(markup)) {
    const name = tag?.toLowerCase();
    if (closes) {
      if (open.pop().localName !== name) throw new TypeError(`${whole} closes nothing.`);
    } else if (name) {
      const pairs = [...attributes.matchAll(/([^\s=>"'/]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?/g)];
      const made = makeHarmless(name, pairs.map(([, key, ...texts]) => [key, filled(texts.find((each) => each !== undefined) ?? "")]));
      open.at(-1).append(made);
      if (!VOID.test(name)) open.push(made);
    } else if (whole.startsWith("<")) {
      if (whole === "<" || whole.includes(HOLE)) throw new TypeError("Write &lt; for text, and no values into comments or names.");
    } else {
      open.at(-1).append(...whole.split(HOLE).flatMap((part, at) => [...(at ? nodesOf(holes.next().value) : []), read(part)]));
    }
  }
  return open[0];
}

// What a field says in a template; nothing for what is absent, false or a structure.
function saidOf(hit, name) {
  const values = [Object.hasOwn(hit, name) ? hit[name] : []].flat().filter((value) => value !== false && value !== null && typeof value !== "object");
  return plain(values.join(", "));
}

// Nodes of a <template> with the fields of a hit: {{field}}, {{{field}}} with its matches, {{#field}}…{{/field}} where it says anything.
function fillTemplate(nodes, hit) {
  let skipped = "";
  const fill = (text) => {
    const [first, ...rest] = text.split(FIELD);
    let filled = skipped ? "" : first;
    for (let at = 0; at < rest.length; at += 4) {
      const [isMarked, sign, name, after] = rest.slice(at, at + 4);
      if (sign === "#") skipped ||= saidOf(hit, name) ? "" : name;
      else if (sign) skipped = skipped === name ? "" : skipped;
      else if (!skipped) filled += isMarked && Object.hasOwn(hit.marked, name) ? hit.marked[name] : saidOf(hit, name);
      if (!skipped) filled += after;
    }
    return filled;
  };
  return [...nodes].flatMap((node) => {
    if (node instanceof Text) return marked(fill(node.data));
    if (!(node instanceof Element) || skipped) return [];
    const made = makeHarmless(node.localName, [...node.attributes].map(({ name, value }) => [name, plain(fillAlone(value, hit))]));
    made.append(...fillTemplate(node.childNodes, hit));
    return [made];
  });
}

const fillAlone = (text, hit) => fillTemplate([document.createTextNode(text)], hit).map((node) => node.textContent ?? node).join("");

function makeCore(BASE, settings, host, selected) {
  const service = serviceOf(BASE, settings.key, settings.clientInfo);
  const pageLanguage = host.closest("[lang]")?.lang || document.documentElement.lang;
  const language = languageOf(BASE, settings.lang || pageLanguage || "en", settings.texts);
  // The box speaks its language; what it finds is the page's.
  const page = { lang: pageLanguage, dir: "auto" };

  const ownTemplate = () => host.querySelector("template[data-site-search-hit]") ?? document.querySelector("template[data-site-search-hit]");

  // The fields that results are shown with: also those that a template of the page names.
  function fieldsOf() {
    const shown = ["title", "url", "excerpt", "author", "date", "version", "breadcrumbs", "image", "section", settings.group, ...settings.fields].filter(Boolean);
    const template = settings.renderHit ? null : ownTemplate();
    const named = template ? new XMLSerializer().serializeToString(template.content).split(FIELD).filter((name, at) => at % 4 === 3) : [];
    return [...new Set([...shown, ...named])];
  }

  const emit = (type, detail, cancelable = false) =>
    host.dispatchEvent(new CustomEvent(`site-search:${type}`, { detail, bubbles: true, cancelable }));

  // The fields of the page that results are to have in common with it, to their values there: pages change.
  const context = () => Object.fromEntries(settings.context.map((field) => [field, saidBy(field)]).filter(([, values]) => values.length));

  const bounds = () => {
    const conditions = conditionsOf(context());
    return conditions.length && settings.filters ? `(${settings.filters}) AND ${conditions.join(" AND ")}` : conditions.join(" AND ") || settings.filters;
  };

  async function searchHereOrElsewhere(wish, signal) {
    const values = Object.values(context()).flat();
    if (!values.length || !(await service.isOwn())) return service.search(wish, signal);
    try {
      const found = await service.search({ ...wish, filters: bounds(), isTried: true }, signal);
      if (found.total) return found;
    } catch (error) {
      if (error.reason !== "refused") throw error; // No document may have such a field.
    }
    const found = await service.search(wish, signal);
    return found.total ? { ...found, missing: values.join(", ") } : found;
  }

  async function ask(query, { offset = 0, limit = settings.limit, sort = [], facets = [], filters = {}, suggestions = 0, isRecorded = true, signal } = {}) {
    const { sections } = settings;
    const wish = { query, offset, limit, sort, facets, chosen: filters, filters: settings.filters, sections, suggestions, fields: fieldsOf(), isRecorded: isRecorded && settings.analytics };
    const answer = await searchHereOrElsewhere(wish, signal);
    if (!settings.transform) return answer;
    const hits = guarded("transform", () => {
      const changed = settings.transform(answer.hits.map((hit) => ({ ...hit })));
      if (!Array.isArray(changed) || !changed.every((hit) => hit instanceof Object)) throw new TypeError("transform must return hits");
      return changed;
    }, answer.hits);
    // Of a hit that it leaves out, nothing is quoted.
    return { ...answer, hits, answer: hits.some((hit) => hit.id === answer.answer?.id) && answer.answer };
  }

  const remember = (query) => { if (settings.recent && query) recent.add(service, query); };

  function select(event, hit, position, { query, queryId }) {
    typedText.keep(query);
    const goesOn = emit("select", { query, hit, position }, true);
    const isWanted = guarded("onSelect", () => settings.onSelect?.(hit), true) !== false;
    if (!goesOn || !isWanted) event.preventDefault();
    if (hit.id !== undefined && settings.analytics) service.click(query, queryId, hit.id, position, (hit.section ?? hit.answer)?.anchor || undefined);
    remember(query);
    selected(event);
  }

  // A text that `transform` changed has no marks.
  const marksIn = (hit, field) => {
    const marks = hit.marked?.[field];
    return marks !== undefined && plain(marks) === hit[field] ? marks : plain(hit[field]);
  };
  const shown = (hit, field) => marked(marksIn(hit, field));

  // What the page itself makes of a hit; nothing, if it does not.
  function ownNodes(hit) {
    const given = { ...hit, marked: { title: marksIn(hit, "title"), snippet: marksIn(hit, "snippet") } };
    if (settings.renderHit) return guarded("renderHit", () => nodesOf(settings.renderHit(given, html)), []);
    const template = ownTemplate();
    return template ? guarded("the template of results", () => fillTemplate(template.content.childNodes, given), []) : [];
  }

  // A hit, or a section of one; `hit` is what the page is told that was chosen.
  function makePlace(looks, address, content, hit, position, asked) {
    const made = make(address ? "a" : "div", { ...looks, ...(address && { href: address.href }) }, ...content);
    made.addEventListener("click", (event) => select(event, hit, position, asked));
    made.addEventListener("auxclick", (event) => { if (event.button === 1) select(event, hit, position, asked); });
    return made;
  }

  const line = (name, nodes) => (nodes.length ? [make("span", { class: name, part: name, ...page }, ...nodes)] : []);

  function imageOf(hit) {
    const address = settings.show.includes("image") && addressOf(hit.image);
    if (!address) return [];
    const image = make("img", { class: "image", part: "image", alt: "", loading: "lazy", decoding: "async", referrerpolicy: "no-referrer", src: address.href });
    image.addEventListener("error", () => image.remove());
    return [image];
  }

  // The page's place in its site: its breadcrumbs, its section, or else its address.
  function placeOf(hit, address) {
    const crumbs = [hit.breadcrumbs ?? []].flat().map(String);
    if (crumbs.at(-1) === hit.title) crumbs.pop();
    const section = settings.group === "section" ? "" : [hit.section ?? []].flat().find((name) => typeof name === "string" && name !== hit.title);
    if (crumbs.length || section) return [make("span", { part: "breadcrumb", ...page }, crumbs.join(" › ") || section)];
    return address ? [make("span", { class: "where", part: "breadcrumb" }, make("bdi", { dir: "ltr" }, readable(address)))] : [];
  }

  // Where a page is, what it is if it is a file, and when it was written.
  function metaOf(hit, address) {
    const date = settings.show.includes("date") ? language.dated(hit.date) : "";
    const kind = fileKind(address);
    const nodes = [
      ...(kind ? [make("span", { class: "kind" }, kind)] : []),
      ...(settings.show.includes("breadcrumb") ? placeOf(hit, address) : []),
      ...(date ? [make("time", { part: "date", datetime: hit.date, ...language.own }, date)] : []),
    ];
    return nodes.length ? [make("span", { class: "meta" }, ...nodes.flatMap((node, at) => (at ? [" · ", node] : [node])))] : [];
  }

  const sectionsOf = (hit) => [hit.sections ?? []].flat().filter((section) => addressOf(section?.url));

  // Of which version it is, where the page that is open is of another.
  function badge({ version }) {
    const own = saidBy("version").map((value) => value.toLowerCase());
    const versions = [version ?? []].flat().map(String);
    const isOther = own.length && versions.length && !versions.some((value) => own.includes(value.toLowerCase()));
    return isOther ? [" ", make("span", { class: "badge", part: "badge" }, versions.join(", "))] : [];
  }

  // The snippet of a hit with sections stands where it is from.
  function makeHit(hit, position, asked) {
    const hasSections = sectionsOf(hit).length > 0;
    const address = addressOf(hit.url);
    const there = address && settings.jump && !hasSections ? passageOf(address, hit.marked?.snippet) : address;
    const own = hit.id === undefined ? [] : ownNodes(hit); // Not for a suggested title.
    const snippet = hit.snippet && !hasSections ? shown(hit, "snippet") : [];
    const content = own.length ? own : [
      icon(fileKind(address) ? "file" : "page"), ...imageOf(hit), ...line("title", [...shown(hit, "title"), ...badge(hit)]),
      ...(hit.id === undefined ? [] : metaOf(hit, address)), ...line("snippet", snippet),
    ];
    return makePlace({ class: "hit", part: "hit" }, there, content, hit, position, asked);
  }

  const makeSections = (hit, position, asked, snippets = SNIPPETS) => sectionsOf(hit).map((section, at) => {
    const path = [section.path ?? []].flat().map((title) => `${title} › `);
    const title = [...(path.length ? [make("span", { class: "path" }, ...path)] : []), ...shown(section, "title")];
    const led = { ...hit, url: section.url, section };
    const snippet = section.snippet && at < snippets ? shown(section, "snippet") : [];
    const content = [icon("section"), ...line("title", title), ...line("snippet", snippet)];
    return makePlace({ class: "hit section", part: "section" }, addressOf(section.url), content, led, position, asked);
  });

  // The passage that answers the query, as a quotation: its words, and the link to where they stand. A choice of it is one of its hit.
  function makeAnswer({ answer, hits, ...asked }) {
    const { id, text, url: whole, anchor } = answer || {};
    if (!text || !addressOf(whole)) return [];
    const url = anchor ? `${whole.split("#")[0]}#${anchor}` : whole;
    const address = addressOf(url);
    const at = hits.findIndex((hit) => hit.id === id);
    const title = plain(hits[at]?.title ?? address.host + address.pathname);
    const content = [
      make("blockquote", { part: "quote", cite: address.href, ...page }, plain(text)),
      make("cite", { class: "title", part: "title", ...page }, icon(fileKind(address) ? "file" : "page"), title),
    ];
    const there = settings.jump && !anchor ? passageOf(address, OPEN + text) : address;
    const led = { title, ...hits[at], id, url, answer };
    return [make("figure", { class: "answer", part: "answer", "aria-label": language.text("answer"), ...language.marksOf("answer") },
      make("p", { class: "meta", "aria-hidden": "true" }, icon("answer"), language.text("answer")),
      makePlace({ class: "hit" }, there, content, led, at < 0 ? null : at + 1, asked))];
  }

  // What the owner wants visitors to know or to see.
  const linkTo = (looks, { text, url }) => {
    const address = addressOf(url);
    return make(address ? "a" : "span", { ...looks, ...page, ...(address && { href: address.href }) }, String(text));
  };
  const notice = ({ notice: given }) => (given?.text ? [linkTo({ part: "notice" }, given)] : []);
  const links = (answer) => [answer.links ?? []].flat().filter((link) => link?.text && addressOf(link.url)).map((link) => linkTo({ class: "hit link", part: "link" }, link));

  function counted({ total, missing, matched, corrected }) {
    return [
      ...(missing ? [...language.spoken("elsewhere", { context: missing }), " "] : []),
      ...(corrected ? [...language.spoken("corrected", { q: corrected }), " "] : []),
      ...(matched === "some" ? [...language.spoken("some"), " "] : []),
      ...(total === 1 ? language.spoken("one") : language.spoken("many", { n: language.number(total) })),
    ];
  }

  function follow(answer, query) {
    const there = addressOf(answer?.redirect);
    if (!there) return false;
    remember(query);
    location.assign(there.href);
    return true;
  }

  // The field with its icon, and the button that empties it.
  function fieldOf(input) {
    const wipe = make("button", { type: "button", class: "wipe", tabindex: "-1" }, icon("clear")); // As with the browser's own button, Tab goes past it.
    const name = () => { for (const [key, value] of Object.entries({ ...language.marksOf("clear"), "aria-label": language.text("clear") })) wipe.setAttribute(key, value); };
    name();
    language.ready.then(name);
    wipe.addEventListener("click", () => {
      input.value = "";
      input.dispatchEvent(new Event("input"));
      input.focus();
    });
    return make("div", { class: "field" }, icon("search"), input, wipe);
  }

  // What the engine searched is reported in any case: it counts towards the plan.
  const log = ({ query, total, isLogged }) => {
    if (!isLogged) (settings.analytics ? service.log(query, total) : service.report());
  };

  return {
    ...language, element: host, settings, service, page, make, icon, dress, wrap, showAbove, ask, bounds, counted, notice, links, follow,
    popular: service.findPopular,
    field: fieldOf, hit: makeHit, sections: makeSections, answer: makeAnswer, remember, log, emit,
  };
}

// --- The full view.

// The page's place for results: of this box, where the place names one by its id.
const pageResults = (host) => [...document.querySelectorAll("[data-site-search-results]")].find(({ dataset }) => !dataset.siteSearchResults || dataset.siteSearchResults === host?.id) ?? null;

const showFull = async (BASE, core, wish, isWanted = () => true) => {
  const [{ showResults }] = await Promise.all([import(`${BASE}/widget-results.js`), core.ready]);
  return isWanted() ? showResults(core, wish) : null;
};

// Whoever comes by an address with a search in it sees the view at once: in its place, or over the page.
const isAddressed = (settings) => !settings.resultsUrl && new URLSearchParams(location.search).has("q");

// --- The boxes of the page.

// Every copy of this script knows of all boxes: a key of the keyboard opens one.
const boxes = (window[Symbol.for("site-search.boxes")] ??= []);
const HAS_POPOVER = typeof HTMLElement.prototype.showPopover === "function";

// Runs searches while keys come: the first at once, then at most one in PACE_MS, and always one after the last key. Two
// may be under way, since a response may take longer than the pace, or one on a slow line.
function makePace(lastTook, run) {
  const running = new Set();
  let isAsked = false;
  let begun = -Infinity;
  let timer = 0;

  const age = ({ at }) => performance.now() - at;

  function next() {
    clearTimeout(timer);
    if (!isAsked) return;
    const [oldest] = running;
    const isSlow = lastTook() > SLOW_LINE_MS || (oldest && age(oldest) > SLOW_LINE_MS);
    const rest = begun + (isSlow ? SLOW_LINE_MS : PACE_MS) - performance.now();
    if (oldest && age(oldest) > STALE_MS) oldest.control.abort();
    else if (rest <= 0 && running.size < (isSlow ? 1 : 2)) return void start();
    timer = setTimeout(next, rest > 0 ? rest : PACE_MS);
  }

  async function start() {
    const one = { at: performance.now(), control: new AbortController() };
    isAsked = false;
    begun = one.at;
    const older = [...running];
    running.add(one);
    await run(one.control.signal, () => older.forEach(({ control }) => control.abort()));
    running.delete(one);
    next();
  }

  return {
    ask() {
      isAsked = true;
      next();
    },
    stop() {
      isAsked = false;
      clearTimeout(timer);
      for (const { control } of running) control.abort();
    },
  };
}

function build(BASE, host, settings) {
  if (!settings.key.startsWith("svc_pub_")) throw new Error("Site search: only a public key (svc_pub_…) may stand in a page.");
  boxes.find((box) => box.host === host)?.unmount();
  const isModal = settings.mode === "modal";
  const core = makeCore(BASE, settings, host, (event) => selected(event));
  const { service, text, spoken, own } = core;
  const life = new AbortController();
  const on = (target, type, listener, options) => target.addEventListener(type, listener, { signal: life.signal, ...options });

  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  dress(root);
  const themed = host.dataset.theme;
  if (settings.theme) host.dataset.theme = settings.theme;

  const label = core.marksOf("label");
  const input = make("input", {
    type: "search", part: "input", role: "combobox", "aria-label": text("label"), placeholder: settings.placeholder || text("label"),
    maxlength: "170", // In any script at most 512 bytes, which an engine accepts.
    "aria-expanded": "false", "aria-controls": "results", "aria-autocomplete": "list", "aria-haspopup": "listbox",
    autocomplete: "off", autocapitalize: "off", spellcheck: "false", enterkeyhint: "search", ...label,
  });
  // Told from outside of the panel: what appears together with its text is not read out.
  const told = make("div", { class: "told", role: "status" });
  const status = make("p", { class: "status", part: "status" });
  const notice = make("p", { class: "notice", hidden: "" });
  const list = make("div", { id: "results", role: "listbox", tabindex: "-1", hidden: "" });
  const foot = make("div", { class: "foot", hidden: "" });
  const panel = make("div", { class: isModal ? "panel" : "panel afloat", part: "panel", tabindex: "-1", hidden: "", ...own }, notice, status, list, foot);
  if (!isModal) core.input = input;
  const form = make("form", { role: "search", ...own }, core.field(input), told);
  const close = make("button", { type: "button", class: "close" }, make("kbd", { "aria-hidden": "true", dir: "ltr" }), icon("clear"));
  const nameParts = () => {
    for (const [key, value] of Object.entries({ ...core.marksOf("results"), "aria-label": text("results") })) list.setAttribute(key, value);
    for (const [key, value] of Object.entries(core.marksOf("close"))) close.setAttribute(key, value);
    close.setAttribute("aria-label", `${text("close")} (Esc)`); // It shows the key.
  };
  nameParts();
  core.ready.then(nameParts);
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

  const answers = new Map();
  let latest = 0; // Number of the last search.
  let shownFor = 0; // Number of the search whose results stand.
  let underWay = {}; // The last search that has begun: its query, and its answer as a promise.
  let chosen = null;
  let isPicked = false; // Whether the visitor chose it, and not the box.
  let waiting = 0;
  let settling = 0;
  let pause = 0;
  let telling = 0;
  let view = null; // All results, once somebody wanted them.
  let intent = null; // What the visitor sees the results of, until it was logged.

  const options = () => [...list.querySelectorAll("[role=option]")];

  // --- Where the panel is: in the top layer, which nothing clips, below the input or above it.

  function place() {
    if (isModal || panel.hidden) return;
    unzoom(panel);
    const at = input.getBoundingClientRect();
    const width = document.documentElement.clientWidth;
    const { offsetTop = 0, height = innerHeight } = window.visualViewport ?? {};
    const wide = Math.min(Math.max(at.width, LEAST_WIDTH), width - 2 * EDGE);
    const start = getComputedStyle(host).direction === "rtl" ? at.right - wide : at.left;
    const left = Math.max(EDGE, Math.min(start, width - wide - EDGE));
    const below = offsetTop + height - at.bottom - 2 * EDGE;
    const above = at.top - offsetTop - 2 * EDGE;
    const isAbove = below < 220 && above > below;
    const most = Math.max(120, Math.min(640, 0.8 * height, isAbove ? above : below));
    Object.assign(panel.style, { width: `${wide}px`, maxHeight: `${most}px`, left: `${left}px`, top: "0" });
    const top = isAbove ? at.top - 6 - panel.offsetHeight : at.bottom + 6;
    panel.style.top = `${top}px`;
    // Without a top layer, an ancestor may have made itself what positions are counted from.
    const is = panel.getBoundingClientRect();
    if (Math.abs(is.top - top) > 1 || Math.abs(is.left - left) > 1) {
      Object.assign(panel.style, { left: `${2 * left - is.left}px`, top: `${2 * top - is.top}px` });
    }
  }

  function open(isOpen) {
    panel.hidden = !isOpen;
    if (HAS_POPOVER && !isModal && host.isConnected && panel.matches(":popover-open") !== isOpen) panel.togglePopover(isOpen);
    input.setAttribute("aria-expanded", String(isOpen && !list.hidden));
    if (!isOpen) {
      choose(null);
      clearTimeout(telling);
      told.replaceChildren();
    }
    place();
  }

  function hide() {
    if (isModal) dialog.close();
    else open(false);
  }

  // The first result is chosen as soon as it is there, except where a keyboard on the screen would hide it.
  const choosesFirst = () => !matchMedia("(pointer: coarse)").matches;

  function choose(option) {
    chosen?.setAttribute("aria-selected", "false");
    chosen = option;
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
    clearTimeout(telling);
    telling = setTimeout(() => told.replaceChildren(...nodes.map((node) => node.cloneNode?.(true) ?? node)), ANNOUNCED_MS);
  }

  const chooseFirst = () => { if (choosesFirst()) choose([...list.querySelectorAll("#answer, #hit-0")].find(isSeen)); };
  const isSeen = (element) => element.getClientRects().length > 0; // The page may hide parts.

  // A message without results stands below its picture.
  function present(message, sections, after, above = [], quoted = [], picture = "") {
    const isAlone = Boolean(picture && !sections.length);
    choose(null);
    notice.replaceChildren(...above);
    notice.hidden = !above.length;
    status.replaceChildren(...(isAlone ? [icon(picture)] : []), ...message);
    status.classList.toggle("alone", isAlone);
    status.hidden = !message.length;
    list.replaceChildren(...sections);
    list.hidden = !sections.length;
    list.removeAttribute("aria-busy");
    foot.replaceChildren(...after, keys());
    foot.hidden = !sections.length && !isModal;
    list.scrollTop = 0;
    open(Boolean(isModal || message.length || sections.length));
    fit();
    if (message.length) announce([...above.map((node) => `${node.textContent} `), ...message, ...quoted.filter(isSeen).map((node) => `. ${text("answer")}: ${node.querySelector("blockquote").textContent}`)]);
  }

  const keyCaps = (caps) => caps.map((cap) => make("kbd", { dir: "ltr", "aria-hidden": "true" }, cap));

  // Which keys do what, on wide screens; screen readers know it from the roles.
  function keys() {
    const legend = [["navigate", "↑", "↓"], ["open", "↵"], ["close", "Esc"]];
    return make("p", { class: "keys", "aria-hidden": "true" }, ...legend.map(([key, ...caps]) => make("span", core.marksOf(key), ...keyCaps(caps), text(key))));
  }

  // The list ends with a whole row: what follows is seen by scrolling.
  function fit() {
    list.style.maxHeight = "";
    if (list.scrollHeight <= list.clientHeight) return;
    const { top, bottom } = list.getBoundingClientRect();
    const ends = options().map((option) => option.getBoundingClientRect().bottom + list.scrollTop).filter((end) => end <= bottom);
    if (ends.length) list.style.maxHeight = `${ends.at(-1) - top}px`;
  }

  const say = (key, picture) => present(spoken(key), [], [], [], [], picture);

  function fail(error) {
    if (!(error instanceof Refusal)) console.error(error);
    const reason = error instanceof Refusal ? error.reason : "away";
    say(reason, "problem");
    core.emit("error", { reason });
  }

  // --- What is in it: recent searches, suggestions, results.

  const asOption = (made, id) => {
    for (const [key, value] of Object.entries({ role: "option", id, "aria-selected": "false", tabindex: "-1" })) made.setAttribute(key, value);
    if (made.firstChild?.localName === "svg") made.append(icon("go", "go"));
    return made;
  };

  function searchOption(query, id, looks = "search") {
    const option = asOption(make("div", { class: "hit query", part: "hit", ...core.page }, icon(looks), make("span", {}, query)), id);
    on(option, "click", () => {
      input.value = query;
      turn();
      core.remember(query);
      search();
    });
    return option;
  }

  // Searches that may be meant, under a heading.
  function searches(key, queries) {
    const heading = make("p", { class: "status heading", "aria-hidden": "true", ...core.marksOf(key) }, text(key));
    return queries.length ? [group(key, [heading, ...queries.map((query, at) => searchOption(query, `${key}-${at}`, key))])] : [];
  }

  const group = (key, made) => make("div", { role: "group", "aria-label": text(key), ...core.marksOf(key) }, ...made);

  // Searches in one line above the results, titles of pages that are not among them below.
  function suggestionGroups({ query, hits, suggestions }) {
    const found = new Set(hits.map((hit) => addressOf(hit.url)?.href));
    const [queries, titles] = [[], []];
    suggestions.forEach((suggestion, position) => {
      const id = `suggestion-${position}`;
      const words = String(suggestion.text ?? "");
      const address = addressOf(suggestion.url);
      if (suggestion.kind === "title") {
        if (address && !found.has(address.href)) titles.push(asOption(core.hit({ title: words, url: suggestion.url, snippet: "" }, null, { query }), id));
      } else if (words.toLowerCase() !== query.toLowerCase()) {
        const option = searchOption(words, id);
        option.classList.add("chip");
        queries.push(option);
      }
    });
    const [above, below] = [queries, titles].map((made) => (made.length ? [group("suggestions", made)] : []));
    for (const line of above) line.classList.add("chips");
    return [above, below];
  }

  function moreElement() {
    const address = settings.resultsUrl && resultsAddress(input.value.trim());
    const isLink = address && !pageResults(host);
    const more = make(isLink ? "a" : "button",
      { class: "more", part: "more", "aria-keyshortcuts": "Shift+Enter", ...core.marksOf("more"), ...(isLink ? { href: address.href } : { type: "button" }) },
      text("more"), ...keyCaps(["⇧", "↵"]));
    on(more, "click", (event) => {
      logIntent();
      if (!isLink) openFull(input.value.trim());
      else if (!event.ctrlKey && !event.metaKey && !event.shiftKey) hide();
    });
    return more;
  }

  function show(answer) {
    const { query, hits } = answer;
    const [searched, titles] = suggestionGroups(answer);
    const above = core.notice(answer);
    if (!hits.length) {
      const links = core.links(answer).map((link, at) => {
        on(link, "click", selected);
        return asOption(link, `link-${at}`);
      });
      present(spoken("none", { q: query }), [...searched, ...titles, ...links, ...searches("popular", answer.popular)], [], above, [], "none");
      return;
    }
    const groups = new Map();
    hits.forEach((hit, position) => {
      const name = settings.group ? String([hit[settings.group] ?? ""].flat()[0] ?? "") : "";
      groups.set(name, [...(groups.get(name) ?? []),
        asOption(core.hit(hit, position + 1, answer), `hit-${position}`),
        ...core.sections(hit, position + 1, answer, 1).map((section, at) => asOption(section, `hit-${position}-${at}`))]);
    });
    const made = [...groups].flatMap(([name, rows]) => (name
      ? [make("div", { role: "group", "aria-label": name, ...core.page }, make("p", { class: "heading", part: "group", "aria-hidden": "true" }, name), ...rows)]
      : rows));
    const quoted = core.answer(answer);
    for (const figure of quoted) {
      figure.setAttribute("role", "group");
      asOption(figure.lastChild, "answer");
    }
    hideSame(made);
    present(core.counted(answer), [...searched, ...quoted, ...made, ...titles], [moreElement()], above, quoted);
    chooseFirst();
  }

  // Where all results are in the same place of their site, it says nothing.
  function hideSame(rows) {
    const places = rows.map((row) => row.querySelector("[part=breadcrumb]")).filter(Boolean);
    if (places.length < 2 || new Set(places.map((place) => place.textContent)).size > 1) return;
    for (const place of places) {
      (place.nextSibling ?? place.previousSibling)?.remove(); // What separates it.
      (place.parentElement.childNodes.length > 1 ? place : place.parentElement).remove();
    }
  }

  async function showStart() {
    await core.ready;
    const isEmpty = () => !input.value.trim() && !life.signal.aborted && root.activeElement === input;
    const queries = settings.recent ? await recent.read(service) : [];
    const clear = make("button", { type: "button", ...core.marksOf("clear") }, text("clear"));
    on(clear, "click", async () => {
      await recent.clear(service);
      input.focus();
      showStart();
    });
    const offer = (popular) => {
      const others = popular.filter((query) => !queries.includes(query));
      present([], [...searches("recent", queries), ...searches("popular", others)], queries.length ? [clear] : []);
    };
    if (isEmpty()) offer([]);
    const popular = await service.findPopular();
    if (isEmpty() && !isPicked && popular.length) offer(popular);
  }

  // --- Searching.

  function logIntent() {
    clearTimeout(pause);
    if (intent === null) return;
    const { query, total } = intent;
    intent = null;
    core.log({ query, total });
  }

  function selected(event) {
    logIntent();
    if (event.button || event.ctrlKey || event.metaKey || event.shiftKey) return; // It opens elsewhere.
    hide();
  }

  const turn = () => { input.dir = input.value ? "auto" : label.dir; };

  function answerFor(query) {
    const kept = answers.get(query + core.bounds());
    return kept && Date.now() - kept.at < ANSWERS_MS ? kept : null;
  }

  async function find(query, signal) {
    const kept = answerFor(query);
    if (kept) return kept;
    const answer = await core.ask(query, { signal, suggestions: SUGGESTED });
    const popular = answer.hits.length ? [] : await service.findPopular();
    const found = { ...answer, popular: popular.filter((other) => other !== query), at: Date.now() };
    answers.set(query + core.bounds(), found);
    if (answers.size > KEPT_ANSWERS) answers.delete(answers.keys().next().value);
    return found;
  }

  // What is typed is searched at once, then as often as the pace allows, and always in the end. An older response shows
  // its rows only until a newer one comes.
  const pace = makePace(service.lastTook, async (signal, giveUpOlder) => {
    const query = input.value.trim();
    const now = ++latest;
    underWay = { query, answer: find(query, signal) };
    try {
      const answer = await underWay.answer;
      if (now < shownFor || signal.aborted) return;
      giveUpOlder();
      showFor(now, query, answer);
    } catch (error) {
      if (now !== latest || signal.aborted) return;
      stopWaiting();
      fail(error);
    } finally {
      if (underWay.query === query) underWay = {};
    }
  });

  function showFor(now, query, answer) {
    shownFor = now;
    stopWaiting();
    show(answer);
    if (query !== input.value.trim()) return waitForResults(); // What follows is on its way.
    settling = setTimeout(() => core.emit("search", { query, total: answer.total, hits: answer.hits }), SETTLED_MS);
    if (answer.isLogged) return;
    intent = { query, total: answer.total };
    pause = setTimeout(logIntent, PAUSE_MS);
  }

  function waitForResults() {
    waiting ||= setTimeout(() => {
      if (list.hidden) say("wait");
      else list.setAttribute("aria-busy", "true");
      status.replaceChildren(...spoken("wait"));
    }, SLOW_MS);
  }

  function stopWaiting() {
    clearTimeout(waiting);
    waiting = 0;
  }

  function search() {
    for (const timer of [pause, settling]) clearTimeout(timer);
    const query = input.value.trim();
    if (query.length < settings.min) {
      stop();
      logIntent();
      present([], [], []);
      showStart();
      return;
    }
    intent = null; // The visitor went on typing: what stood before was not it.
    const kept = answerFor(query);
    if (kept) {
      stop();
      showFor(latest, query, kept);
      return;
    }
    waitForResults();
    pace.ask();
  }

  // Nothing that is on its way will be shown.
  function stop() {
    latest += 1;
    pace.stop();
    stopWaiting();
    clearTimeout(settling);
  }

  // --- All results: on the page's own place for them, at the page's address for them, or here.

  function resultsAddress(query) {
    const address = addressOf(settings.resultsUrl, document.baseURI);
    if (!address) console.error("Site search: data-results-url must be a path or an http(s) address.");
    else address.searchParams.set("q", query);
    return address;
  }

  // Enter leads where the owner wants it to, to the first result of what was typed, or else to all results.
  async function enter(query, modifiers) {
    const isUnderWay = underWay.query === query;
    if (!isUnderWay) stop();
    const now = latest;
    waitForResults();
    // If the search fails, the view of all results says so.
    const answer = await (isUnderWay ? underWay.answer : find(query)).catch(() => null);
    if (now !== latest) return;
    stopWaiting();
    if (core.follow(answer, query)) return;
    if (answer && choosesFirst()) {
      showFor(now, query, answer);
      if (chosen) return void press(chosen, modifiers);
    }
    openFull(query);
  }

  const press = (option, modifiers) => option.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, composed: true, ...modifiers }));

  async function openFull(query) {
    stop();
    const now = latest;
    core.remember(query);
    const container = pageResults(host);
    const address = !container && settings.resultsUrl && resultsAddress(query);
    if (address) {
      location.assign(address.href);
      return;
    }
    const slow = setTimeout(() => say("wait"), SLOW_MS);
    try {
      view = await showFull(BASE, core, { container, query }, () => {
        clearTimeout(slow);
        if (now !== latest) return false;
        hide();
        return true;
      }) ?? view;
    } catch (error) {
      clearTimeout(slow);
      console.error(error);
      if (now === latest) fail(new Refusal("away"));
    }
  }

  // --- Keys, focus, and the page around.

  on(input, "input", () => {
    turn();
    search();
  });
  function resume() {
    service.clientInfo().catch(() => {}); // Told when there is something to search for.
    if (!list.hidden || status.hasChildNodes()) {
      open(true);
      chooseFirst();
    } else if (!input.value.trim()) showStart();
    else if (!latest) search(); // It was filled before.
  }
  on(input, "focus", resume);
  on(input, "click", () => { if (panel.hidden) resume(); }); // The field may have the focus still, such as after Escape.
  on(input, "keydown", (event) => {
    if (event.isComposing || event.keyCode === 229) return;
    if ((event.key === "ArrowDown" || event.key === "ArrowUp") && options().length) {
      event.preventDefault();
      open(true);
      const all = options().filter(isSeen);
      const step = event.key === "ArrowDown" ? 1 : -1;
      const at = chosen ? all.indexOf(chosen) + step : step > 0 ? 0 : -1;
      choose(all.at(at % all.length));
      isPicked = true;
    } else if (event.key === "Enter") {
      event.preventDefault();
      const query = input.value.trim();
      const { ctrlKey, metaKey, shiftKey } = event;
      if (isPicked && !panel.hidden) press(chosen, { ctrlKey, metaKey, shiftKey });
      else if (query.length >= settings.min) {
        logIntent();
        if (shiftKey) openFull(query);
        else enter(query, { ctrlKey, metaKey });
      }
    }
  });
  on(form, "submit", (event) => event.preventDefault());
  on(root, "keydown", (event) => {
    // Safari ends a composition before its last key, which has this code.
    if (event.key !== "Escape" || event.isComposing || event.keyCode === 229 || (!isModal && panel.hidden)) return;
    event.preventDefault();
    hide();
    if (!isModal) input.focus();
    event.stopPropagation();
  });
  // Of what is typed here the page sees no target that is a field, and might take it for its shortcuts.
  for (const type of ["keydown", "keypress", "keyup"]) {
    on(root, type, (event) => { if (event.key?.length === 1 && !event.ctrlKey && !event.metaKey) event.stopPropagation(); });
  }
  // The box keeps the focus while somebody presses a mouse button on a result.
  on(panel, "mousedown", (event) => event.preventDefault());
  on(host, "focusout", (event) => {
    if (host.contains(event.relatedTarget)) return;
    logIntent();
    if (!isModal) open(false);
  });
  on(document, "pointerdown", (event) => { if (!isModal && !event.composedPath().includes(host)) open(false); });
  on(window, "pagehide", logIntent);
  on(window, "pageshow", (event) => { if (event.persisted) hide(); });
  on(document, "visibilitychange", () => { if (document.visibilityState === "hidden") logIntent(); });
  on(document, "scroll", () => requestAnimationFrame(place), { capture: true, passive: true });
  for (const target of [window, window.visualViewport]) {
    if (target) on(target, "resize", () => requestAnimationFrame(() => { if (!panel.hidden) [place, fit].forEach((each) => each()); }));
  }

  function start() {
    if (isModal && !dialog.open) {
      showAbove(dialog);
      input.select();
    }
    input.focus();
  }
  if (isModal) {
    on(opener, "click", start);
    on(dialog, "close", () => {
      logIntent();
      open(false);
    });
    on(dialog, "pointerdown", (event) => {
      const at = dialog.getBoundingClientRect();
      const isInside = event.clientX >= at.left && event.clientX <= at.right && event.clientY >= at.top && event.clientY <= at.bottom;
      if (event.target === dialog && !isInside) dialog.close();
    });
    on(dialog, "wheel", (event) => { if (event.target === dialog) event.preventDefault(); }, { passive: false });
  }

  function unmount() {
    if (life.signal.aborted) return;
    logIntent();
    stop();
    for (const timer of [pause, telling]) clearTimeout(timer);
    hide();
    life.abort();
    view?.unmount();
    boxes.splice(boxes.indexOf(box), 1);
    if (themed === undefined) delete host.dataset.theme;
    else host.dataset.theme = themed;
    root.adoptedStyleSheets = [];
    root.replaceChildren(make("slot")); // What the page itself has there.
  }

  // The page's place for results, which may come with a later page.
  let container = null;
  function fillPlace() {
    if (pageResults(host) === container) return;
    container = pageResults(host);
    if (container) showView();
  }
  const showView = () =>
    showFull(BASE, core, { container }, () => !life.signal.aborted).then((shown) => { view = shown ?? view; }, (error) => console.error(error));
  fillPlace();
  if (!container && isAddressed(settings)) showView();
  else if (!isAddressed(settings)) {
    input.value = String(typedText.read());
    turn();
  }

  const box = { host, isModal, settings, fillPlace, start, toggle: () => (dialog?.open ? dialog.close() : start()), isOpen: () => Boolean(dialog?.open), unmount };
  boxes.push(box);
  return box;
}

// --- Keys of the page.

const isTyping = (event) => {
  const target = event.composedPath()[0];
  return target instanceof Element && (target.matches("input, textarea, select, [role=textbox], [role=combobox], [role=searchbox]") || target.isContentEditable || isClosed(target));
};

// A closed shadow root hides the field that has the focus: its host stands for it, which as a rule could not have the focus.
const isClosed = (target) => !target.shadowRoot && target === document.activeElement
  && (target.localName.includes("-") || (target.matches(HOSTS) && target.tabIndex < 0 && !target.hasAttribute("tabindex")));
const HOSTS = "article, aside, blockquote, div, footer, h1, h2, h3, h4, h5, h6, header, main, nav, p, section, span";

function answerKey(event) {
  if (event.defaultPrevented || event.isComposing || event.repeat || event.altKey) return;
  const isCommand = event.ctrlKey !== event.metaKey && !event.shiftKey && event.key.toLowerCase() === "k";
  if (!isCommand && (event.key !== "/" || event.ctrlKey || event.metaKey)) return;
  const ordered = boxes
    .filter((box) => box.settings.shortcut && box.host.isConnected && (!isCommand || box.isModal))
    .sort((one, other) => (one.host.compareDocumentPosition(other.host) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1));
  const open = ordered.find((box) => box.isOpen());
  if (open ? !isCommand : (!isCommand && isTyping(event)) || document.querySelector(":modal")) return;
  const box = open ?? ordered.find((one) => one.host.getClientRects().length) ?? ordered[0];
  if (!box) return;
  event.preventDefault();
  box.toggle();
}

// --- The script: what it is loaded with, and what it gives to the page.

function attach(script) {
  const BASE = new URL(script.src).href.replace(/\/widget\.js.*$/, "");
  let given = { ...script.dataset };
  const selector = given.target || "#site-search";

  window.SiteSearch ??= {
    mount(element, options = {}) {
      if (!(element instanceof Element)) throw new TypeError("SiteSearch.mount needs an element.");
      const { unmount } = build(BASE, element, settingsOf({ key: given.key, ...options }));
      return { unmount };
    },
  };

  // Frameworks run the scripts of each page again: the first goes on, with the attributes of the last.
  const followers = (window[Symbol.for("site-search.followers")] ??= new Map());
  const name = `${BASE} ${selector}`;
  if (followers.has(name)) {
    followers.get(name)(given);
    return;
  }

  let settings = settingsOf(given);
  const left = new WeakSet(); // Elements that were taken out of the page, which may put them back.
  let box = null;
  let place = null; // The page's place for results, if they are all there is.
  let view = null;

  function fillPlace(container) {
    view?.unmount();
    view = null;
    place = container;
    showFull(BASE, makeCore(BASE, settings, container, () => {}), { container }, () => place === container)
      .then((shown) => { view = shown ?? view; }, (error) => console.error(error));
  }

  // Pages that change without loading have another element then.
  function follow() {
    if (box && !box.host.isConnected) {
      left.add(box.host);
      box.unmount();
      box = null;
    }
    if (boxes.includes(box)) return box.fillPlace();
    const host = document.querySelector(selector);
    const container = pageResults(host);
    if (host && (!host.shadowRoot || left.delete(host))) box = build(BASE, host, settings);
    else if (!host && container && container !== place) fillPlace(container);
  }

  function renew(latest) {
    if (JSON.stringify(latest) === JSON.stringify(given)) return;
    given = latest;
    settings = settingsOf(given);
    if (boxes.includes(box)) box = build(BASE, box.host, settings);
  }

  function start() {
    const host = document.querySelector(selector);
    if (!given.key) {
      if (host && !host.shadowRoot) console.warn("Site search: the script has no data-key; SiteSearch.mount can be given one.");
      return;
    }
    if (!given.key.startsWith("svc_pub_")) {
      console.error("Site search: only a public key (svc_pub_…) may stand in a page.");
      return;
    }
    if (!host && !pageResults(host)) console.error(`Site search: there is no element ${selector} to put the box into.`);
    followers.set(name, renew);
    checkAttributes(given);
    follow();
    let later = 0;
    new MutationObserver(() => {
      if (box && !box.host.isConnected) follow();
      else later ||= setTimeout(() => {
        later = 0;
        follow();
      }, FOLLOW_MS);
    }).observe(document, { childList: true, subtree: true });
  }

  if (document.readyState === "loading") addEventListener("DOMContentLoaded", start, { once: true });
  else start();
}

// A module is run once, however many elements ask for it, and is not told by which.
const isOurs = (script) => /\/widget\.js$/.test(script.src.split(/[?#]/)[0]);
const scripts = document.currentScript ? [document.currentScript] : [...document.querySelectorAll("script[type=module]")].filter(isOurs);
if (scripts.length && scripts.every((script) => script.src)) {
  scripts.forEach(attach);
  const shared = Symbol.for("site-search.keys"); // One answer to a key, however often the script is loaded.
  if (!window[shared]) addEventListener("keydown", (window[shared] = answerKey));
} else {
  console.error('Site search: load the box by <script src="…/widget.js" data-key="svc_pub_…">; it cannot be imported or copied into a page.');
}
})();
