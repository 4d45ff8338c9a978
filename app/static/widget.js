/* A search box for any page:
 *
 *   <div id="site-search"></div>
 *   <script src="https://…/widget.js" data-key="svc_pub_…" async></script>
 *
 * (async, defer and type="module" make no difference.) Attributes of the script, all but the first optional:
 *   data-key          a public key
 *   data-target       CSS selector of the element to put the box into (#site-search)
 *   data-placeholder  text of the empty box
 *   data-limit        results to show, 1 to 20 (8)
 *   data-lang         language of the box: en, de, es, fr, it, nl, pt (the page's own)
 *   data-theme        light, dark or auto (auto)
 *   data-min          characters before it searches (1)
 *
 * It keeps no cookie and nothing in the browser's storage. What the engine answers is shown as text, never as HTML.
 */
(() => {
"use strict";

function searchBox(script) {
  const setting = (name, otherwise) => script.dataset[name] || otherwise;
  const BASE = new URL(script.src).href.replace(/\/widget\.js.*$/, "");
  const KEY = setting("key", "");
  const LIMIT = Math.min(20, Math.max(1, Number.parseInt(setting("limit", "8"), 10) || 8));
  const SHORTEST = Math.max(1, Number.parseInt(setting("min", "1"), 10) || 1);

  const TYPING_MS = 220; // Between the last keystroke and the search.
  const PAUSE_MS = 1500; // After which results that stand are what was looked for.
  const INFO_MS = 12 * 3600 * 1000; // Engine keys live for a day; they are renewed well before.
  const REPORT_MAX = 10; // Most searches of one report with a public key.
  const KEPT_ANSWERS = 50;

  // Marks around matches: characters that texts do not hold, so that no document can pretend to be one.
  const OPEN = "\uE000";
  const CLOSE = "\uE001";

  const TEXTS = {
    en: { label: "Search", results: "Results", one: "1 result", many: "{n} results", none: "Nothing matches “{q}”.", wait: "Searching…",
      paused: "Search is switched off at the moment.", spent: "Search is busy at the moment. Please try again later.",
      away: "Search cannot be reached at the moment.", refused: "Search is not available." },
    de: { label: "Suche", results: "Treffer", one: "1 Treffer", many: "{n} Treffer", none: "Nichts gefunden zu „{q}“.", wait: "Suche läuft…",
      paused: "Die Suche ist zurzeit abgeschaltet.", spent: "Die Suche ist zurzeit ausgelastet. Bitte später noch einmal versuchen.",
      away: "Die Suche ist zurzeit nicht erreichbar.", refused: "Die Suche ist nicht verfügbar." },
    es: { label: "Buscar", results: "Resultados", one: "1 resultado", many: "{n} resultados", none: "Nada coincide con «{q}».", wait: "Buscando…",
      paused: "La búsqueda está desactivada por ahora.", spent: "La búsqueda está ocupada. Inténtelo más tarde.",
      away: "No se puede acceder a la búsqueda por ahora.", refused: "La búsqueda no está disponible." },
    fr: { label: "Rechercher", results: "Résultats", one: "1 résultat", many: "{n} résultats", none: "Aucun résultat pour « {q} ».", wait: "Recherche…",
      paused: "La recherche est désactivée pour le moment.", spent: "La recherche est saturée. Réessayez plus tard.",
      away: "La recherche est injoignable pour le moment.", refused: "La recherche n’est pas disponible." },
    it: { label: "Cerca", results: "Risultati", one: "1 risultato", many: "{n} risultati", none: "Nessun risultato per «{q}».", wait: "Ricerca…",
      paused: "La ricerca è disattivata al momento.", spent: "La ricerca è occupata. Riprovare più tardi.",
      away: "La ricerca non è raggiungibile al momento.", refused: "La ricerca non è disponibile." },
    nl: { label: "Zoeken", results: "Resultaten", one: "1 resultaat", many: "{n} resultaten", none: "Niets gevonden voor “{q}”.", wait: "Zoeken…",
      paused: "Zoeken staat op dit moment uit.", spent: "Zoeken is nu te druk. Probeer het later opnieuw.",
      away: "Zoeken is nu niet bereikbaar.", refused: "Zoeken is niet beschikbaar." },
    pt: { label: "Pesquisar", results: "Resultados", one: "1 resultado", many: "{n} resultados", none: "Nada corresponde a “{q}”.", wait: "A pesquisar…",
      paused: "A pesquisa está desligada de momento.", spent: "A pesquisa está ocupada. Tente mais tarde.",
      away: "A pesquisa não está acessível de momento.", refused: "A pesquisa não está disponível." },
  };
  const wished = setting("lang", document.documentElement.lang || "en").toLowerCase().split("-")[0];
  const language = Object.hasOwn(TEXTS, wished) ? wished : "en";
  const text = TEXTS[language];
  // The box speaks its language, which is written from left to right, on any page; what it finds is the page's.
  const ITS_OWN = { lang: language, dir: "ltr" };
  const THE_PAGES = { lang: document.documentElement.lang, dir: "auto" };

  const STYLE = `
    :host { all: initial; display: block; position: relative; color-scheme: light;
      --ground: #fff; --text: #17212b; --soft: #53606d; --line: #868f99; --chosen: #e6f1f4; --accent: #0b5c73; --mark: #fff0b3;
      font: 16px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
    :host([data-theme="dark"]) { color-scheme: dark; --ground: #1a2128; --text: #e4e9ed; --soft: #a2aeb9; --line: #75828e;
      --chosen: #1b3139; --accent: #6cc3da; --mark: #52430a; }
    @media (prefers-color-scheme: dark) {
      :host([data-theme="auto"]) { color-scheme: dark; --ground: #1a2128; --text: #e4e9ed; --soft: #a2aeb9; --line: #75828e;
        --chosen: #1b3139; --accent: #6cc3da; --mark: #52430a; }
    }
    * { box-sizing: border-box; }
    [hidden] { display: none !important; }
    input { font: inherit; width: 100%; min-height: 44px; padding: 8px 12px; color: var(--text); background: var(--ground);
      border: 1px solid var(--line); border-radius: 8px; }
    input::placeholder { unicode-bidi: plaintext; }
    input:focus-visible { outline: 3px solid var(--accent); outline-offset: 1px; }
    .panel { position: absolute; z-index: 2147483000; top: calc(100% + 6px); left: 0; right: 0; max-height: min(70vh, 560px); overflow-y: auto;
      color: var(--text); background: var(--ground); border: 1px solid var(--line); border-radius: 10px; padding: 6px;
      box-shadow: 0 8px 28px rgb(0 0 0 / .18); }
    .status { margin: 0; padding: 4px 8px; font-size: 13px; color: var(--soft); overflow-wrap: anywhere; }
    .hit { display: block; padding: 8px; border-radius: 6px; color: inherit; text-decoration: none; overflow-wrap: anywhere; cursor: pointer; }
    .hit:hover, .hit[aria-selected="true"] { background: var(--chosen); }
    .hit[aria-selected="true"] { outline: 2px solid var(--accent); outline-offset: -2px; }
    .title { display: block; font-weight: 600; color: var(--accent); }
    .snippet { display: block; font-size: 14px; color: var(--text); }
    .title, .snippet { text-align: start; }
    mark { background: var(--mark); color: inherit; border-radius: 2px; }
  `;

  // --- The service: who we are, what may be searched, what was done.

  class Refusal extends Error {
    constructor(reason) {
      super(text[reason]);
      this.reason = reason;
    }
  }

  async function call(path, options = {}) {
    const headers = { Authorization: `Bearer ${KEY}`, ...options.headers };
    let response;
    try {
      response = await fetch(BASE + path, { ...options, headers, credentials: "omit" });
    } catch {
      throw new Refusal("away");
    }
    if (response.ok) return response.json();
    if (response.status === 401 || response.status === 403) {
      const answer = await response.json().catch(() => ({}));
      console.error(`Site search: ${answer.message || response.status}`);
      throw new Refusal("refused");
    }
    throw new Refusal(response.status === 429 ? "spent" : "away");
  }

  let info = null;
  let infoAt = 0;

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
  const isGateway = (known) => known.engine_host === `${BASE}/engine` || /\/engine$/.test(known.engine_host);

  const isTypesense = (known) =>
    // The gateway and Meilisearch speak the same; Meilisearch's keys are tokens of three parts, Typesense's have no dots.
    !isGateway(known) &&
    (known.engine_public_key || known.engine_key).split(".").length !== 3;

  function meilisearchRequest(known, query) {
    return [`${known.engine_host}/indexes/${encodeURIComponent(known.index)}/search`, {
      method: "POST",
      headers: {
        "Content-Type": "application/json", Authorization: `Bearer ${known.engine_public_key || known.engine_key}`,
        ...(isGateway(known) && { "X-Search-Session": session }),
      },
      body: JSON.stringify({
        q: query, limit: LIMIT, attributesToRetrieve: ["title", "url", "excerpt"], attributesToHighlight: ["title", "content"],
        attributesToCrop: ["content"], cropLength: 28, highlightPreTag: OPEN, highlightPostTag: CLOSE,
      }),
    }];
  }

  const readMeilisearch = (answer) => ({
    total: answer.estimatedTotalHits ?? answer.totalHits ?? answer.hits.length,
    hits: answer.hits.map((hit) => ({
      url: hit.url, title: hit._formatted?.title || hit.title || hit.url,
      snippet: (hit._formatted?.content || "").includes(OPEN) ? hit._formatted.content : hit.excerpt || hit._formatted?.content || "",
    })),
  });

  function typesenseRequest(known, query) {
    const key = encodeURIComponent(known.engine_public_key || known.engine_key);
    return [`${known.engine_host}/multi_search?x-typesense-api-key=${key}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ searches: [{
        collection: known.index, q: query, query_by: "title,excerpt,content", query_by_weights: "4,2,1", per_page: LIMIT,
        include_fields: "title,url,excerpt,content", highlight_fields: "title,content", highlight_affix_num_tokens: 12,
        highlight_start_tag: OPEN, highlight_end_tag: CLOSE,
      }] }),
    }];
  }

  function readTypesense(answer) {
    const [result] = answer.results;
    if (result.error) throw Object.assign(new Error(result.error), { status: result.code });
    return {
      total: result.found,
      hits: result.hits.map(({ document: found, highlight = {} }) => ({
        url: found.url, title: highlight.title?.value || highlight.title?.snippet || found.title || found.url,
        snippet: highlight.content?.snippet || found.excerpt || (found.content || "").slice(0, 160),
      })),
    };
  }

  let searched = 0; // Searches the engine ran that no report has told of.

  async function ask(query, again = true) {
    const known = await clientInfo();
    if (!known.active) {
      info = null; // It may be resumed while the page is open.
      throw new Refusal("paused");
    }
    const typesense = isTypesense(known);
    const [address, options] = (typesense ? typesenseRequest : meilisearchRequest)(known, query);
    let status;
    try {
      const response = await fetch(address, { ...options, credentials: "omit" });
      status = response.status;
      if (response.ok) {
        const answer = (typesense ? readTypesense : readMeilisearch)(await response.json());
        if (!isGateway(known)) searched += 1;
        return { ...answer, isLogged: isGateway(known) };
      }
    } catch (error) {
      status = error.status;
    }
    if (status === 429) throw new Refusal("spent");
    if (again && (status === 401 || status === 403)) {
      await clientInfo(true); // The engine's key ended: it expired, or the site was paused for a while.
      return ask(query, false);
    }
    throw new Refusal(status === 401 || status === 403 ? "refused" : "away");
  }

  const random = () => Array.from(crypto.getRandomValues(new Uint8Array(15)), (byte) => (byte % 36).toString(36)).join("");
  const session = random();
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

  let intent = null; // What the visitor sees the results of, until it was logged.

  function logIntent() {
    if (intent === null) return;
    const { query, total } = intent;
    intent = null;
    const entry = { query, results_count: total, session_id: session, timestamp: new Date().toISOString() };
    tell("/api/v1/search-log", entry).catch(() => {}); // A lost entry of the statistics is no visitor's concern.
    reportUsage().catch(() => {});
  }

  // --- The box.

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function marked(value) {
    const parts = String(value).split(OPEN);
    const nodes = [parts.shift()];
    for (const part of parts) {
      const [match, ...rest] = part.split(CLOSE);
      nodes.push(element("mark", {}, match), rest.join(""));
    }
    return nodes;
  }

  function addressOf(url) {
    try {
      const address = new URL(url, location.origin);
      return /^https?:$/.test(address.protocol) ? address.href : null;
    } catch {
      return null;
    }
  }

  function build(host) {
    const root = host.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet(); // A page's Content-Security-Policy has no say in it.
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
    host.dataset.theme = setting("theme", "auto");

    const input = element("input", {
      type: "search", role: "combobox", "aria-label": text.label, placeholder: setting("placeholder", text.label), maxlength: "200",
      "aria-expanded": "false", "aria-controls": "results", "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false",
      enterkeyhint: "search", dir: "auto",
    });
    const status = element("p", { class: "status", role: "status" });
    const list = element("div", { id: "results", role: "listbox", "aria-label": text.results });
    const panel = element("div", { class: "panel", hidden: "", ...ITS_OWN }, status, list);
    const form = element("form", { role: "search", ...ITS_OWN }, input);
    root.append(form, panel);

    const answers = new Map();
    let latest = 0;
    let chosen = -1;
    let typing = 0;
    let pause = 0;

    const open = (isOpen) => {
      panel.hidden = !isOpen;
      input.setAttribute("aria-expanded", String(isOpen));
      if (!isOpen) choose(-1);
    };

    function choose(position) {
      list.children[chosen]?.setAttribute("aria-selected", "false");
      chosen = position;
      const option = list.children[chosen];
      if (option) {
        option.setAttribute("aria-selected", "true");
        option.scrollIntoView({ block: "nearest" });
        input.setAttribute("aria-activedescendant", option.id);
      } else {
        input.removeAttribute("aria-activedescendant");
      }
    }

    function say(...message) {
      list.replaceChildren();
      choose(-1);
      status.replaceChildren(...message);
      open(true);
    }

    function show(query, { total, hits }) {
      if (!hits.length) {
        const [before, after] = text.none.split("{q}");
        say(before, element("bdi", {}, query), after);
        return;
      }
      list.replaceChildren(...hits.map((hit, position) => {
        const address = addressOf(hit.url);
        const option = element(address ? "a" : "div",
          { class: "hit", role: "option", id: `hit-${position}`, "aria-selected": "false", tabindex: "-1", ...(address && { href: address }) },
          element("span", { class: "title", ...THE_PAGES }, ...marked(hit.title)),
          element("span", { class: "snippet", ...THE_PAGES }, ...marked(hit.snippet)));
        option.addEventListener("click", logIntent);
        return option;
      }));
      choose(-1);
      status.textContent = total === 1 ? text.one : text.many.replace("{n}", total.toLocaleString(language));
      open(true);
    }

    async function search() {
      clearTimeout(typing);
      clearTimeout(pause);
      const query = input.value.trim();
      const turn = ++latest;
      if (query.length < SHORTEST) {
        logIntent();
        open(false);
        return;
      }
      intent = null; // The visitor went on typing: what stood before was not it.
      try {
        if (!answers.has(query)) {
          if (panel.hidden) say(text.wait);
          answers.set(query, await ask(query));
          if (answers.size > KEPT_ANSWERS) answers.delete(answers.keys().next().value);
        }
        if (turn !== latest) return;
        const answer = answers.get(query);
        show(query, answer);
        if (answer.isLogged) return;
        intent = { query, total: answer.total };
        pause = setTimeout(logIntent, PAUSE_MS);
      } catch (error) {
        if (!(error instanceof Refusal)) console.error(error);
        if (turn === latest) say(error instanceof Refusal ? error.message : text.away);
      }
    }

    input.addEventListener("input", () => {
      clearTimeout(typing);
      clearTimeout(pause);
      typing = setTimeout(search, input.value.trim() ? TYPING_MS : 0);
    });
    input.addEventListener("focus", () => {
      clientInfo().catch(() => {}); // Told when there is something to search for.
      if (list.children.length) open(true);
    });
    input.addEventListener("keydown", (event) => {
      const count = list.children.length;
      if (event.isComposing) return;
      if ((event.key === "ArrowDown" || event.key === "ArrowUp") && count) {
        event.preventDefault();
        open(true);
        const step = event.key === "ArrowDown" ? 1 : -1;
        choose(chosen < 0 ? (step > 0 ? 0 : count - 1) : (chosen + step + count) % count);
      } else if (event.key === "Escape" && !panel.hidden) {
        event.preventDefault();
        open(false);
      }
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const option = list.children[chosen];
      if (option && !panel.hidden) option.click();
      else search().then(logIntent);
    });
    // The box keeps the focus while somebody presses a mouse button on a result.
    panel.addEventListener("mousedown", (event) => event.preventDefault());
    host.addEventListener("focusout", (event) => {
      if (!host.contains(event.relatedTarget)) {
        logIntent();
        open(false);
      }
    });
    addEventListener("pagehide", logIntent);
    document.addEventListener("visibilitychange", () => { if (document.visibilityState === "hidden") logIntent(); });
  }

  function start() {
    const selector = setting("target", "#site-search");
    const host = document.querySelector(selector);
    if (!KEY) console.error("Site search: the script needs data-key with a public key.");
    else if (!KEY.startsWith("svc_pub_")) console.error("Site search: only a public key (svc_pub_…) may stand in a page.");
    else if (!host) console.error(`Site search: there is no element ${selector} to put the box into.`);
    else if (!host.shadowRoot) build(host);
  }

  if (document.readyState === "loading") addEventListener("DOMContentLoaded", start, { once: true });
  else start();
}

// A module is run once, however many elements ask for it, and is not told by which.
const isOurs = (script) => /\/widget\.js$/.test(script.src.split(/[?#]/)[0]);
const scripts = document.currentScript
  ? [document.currentScript]
  : [...document.querySelectorAll("script[type=module][data-key]")].filter(isOurs);
if (scripts.length && scripts.every((script) => script.src)) scripts.forEach(searchBox);
else console.error('Site search: load the box by <script src="…/widget.js" data-key="svc_pub_…">; it cannot be imported or copied into a page.');
})();
