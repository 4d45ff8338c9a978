/* Lists of related pages: <div data-site-search="related"></div>. widget.js loads this module on pages with such elements.
 *
 * Each list is for the page that contains it: the page at its canonical URL or, if that is not indexed, at its own URL.
 * An element without related pages stays empty.
 */
const MAX_PAGES = 10;
const DEFAULT_PAGES = 4;
const NEAR_PX = 1000; // Distance to the window from which a list is loaded.

// "Related pages" in every language of the search box.
const HEADINGS = Object.fromEntries("en Related pages|de Verwandte Seiten|fr Pages similaires|es Páginas relacionadas|it Pagine correlate|pt Páginas relacionadas|nl Verwante pagina’s|sv Relaterade sidor|da Relaterede sider|no Relaterte sider|fi Aiheeseen liittyvät sivut|hu Kapcsolódó oldalak|ro Pagini similare|pl Powiązane strony|cs Související stránky|tr İlgili sayfalar|id Halaman terkait|ca Pàgines relacionades|eu Lotutako orriak|et Seotud lehed|ga Leathanaigh ghaolmhara|lt Susiję puslapiai|eo Rilataj paĝoj|el Σχετικές σελίδες|ru Похожие страницы|sr Сродне странице|ar صفحات ذات صلة|fa صفحه‌های مرتبط|hi संबंधित पृष्ठ|ne सम्बन्धित पृष्ठहरू|hy Առնչվող էջեր|ta தொடர்புடைய பக்கங்கள்|yi פֿאַרבונדענע בלעטער|ja 関連ページ|zh 相关页面|ko 관련 페이지|th หน้าที่เกี่ยวข้อง|vi Trang liên quan".split("|").map((entry) => entry.split(/ (.*)/)));
const ALIASES = { nb: "no", nn: "no" };
const RIGHT_TO_LEFT = /^(ar|fa|yi)$/;

const STYLE = `
  :host { display: block; }
  :host([hidden]) { display: none; }
  h2 { margin: 0 0 .5em; font-size: 1.17em; line-height: 1.3; text-align: start; }
  ul { margin: 0; padding: 0; list-style: none; }
  li { margin: 0 0 .5em; overflow-wrap: anywhere; text-align: start; }
  a { color: var(--site-search-accent, LinkText); }
  a:focus-visible { outline: 2px solid currentColor; outline-offset: 2px; }
  @media print { :host { display: none; } }
`;

function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function parseUrl(url, base = location.origin) {
  if (typeof url !== "string" || !url) return null;
  try {
    const parsed = new URL(url, base);
    return /^https?:$/.test(parsed.protocol) ? parsed : null;
  } catch {
    return null;
  }
}

/** Returns the URLs at which this page may be indexed, the most likely one first. */
function pageUrls() {
  const own = parseUrl(location.href);
  const canonical = parseUrl(document.querySelector('link[rel~="canonical" i][href]')?.href);
  return [...new Set([canonical, own].filter(Boolean).map((url) => {
    url.hash = "";
    return url.href;
  }))];
}

async function fetchPages(BASE, key, parameters) {
  for (const url of pageUrls()) {
    const query = new URLSearchParams({ url, ...parameters });
    const response = await fetch(`${BASE}/v1/related?${query}`, { credentials: "omit", headers: { Authorization: `Bearer ${key}` } });
    const body = await response.json();
    if (response.ok) return body.pages;
    if (response.status !== 404) throw new Error(`Site search: ${body.message}`);
  }
  return [];
}

function headingOf(element, settings) {
  const pageLanguage = element.closest("[lang]")?.lang || "en";
  const base = (settings.lang || pageLanguage).toLowerCase().split(/[-_]/)[0];
  const code = ALIASES[base] ?? base;
  const lang = Object.hasOwn(HEADINGS, code) ? code : "en";
  const attributes = element.dataset.heading ? {} : { lang, dir: RIGHT_TO_LEFT.test(lang) ? "rtl" : "ltr" };
  return make("h2", { id: "heading", part: "heading", ...attributes }, element.dataset.heading || HEADINGS[lang]);
}

function render(element, settings, pages) {
  const links = pages.flatMap(({ title, url }) => {
    const target = parseUrl(url);
    return target ? [make("li", { part: "item" }, make("a", { part: "link", href: target.href, dir: "auto" }, String(title || target.href)))] : [];
  });
  const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet(); // A page's Content-Security-Policy does not apply to it.
  sheet.replaceSync(STYLE);
  root.adoptedStyleSheets = [sheet];
  root.replaceChildren(...(links.length
    ? [make("nav", { "aria-labelledby": "heading" }, headingOf(element, settings), make("ul", { part: "list", role: "list" }, ...links))]
    : []));
}

const shown = new WeakMap(); // Element -> the page's URL for which it is filled.
async function fill(BASE, settings, element) {
  const page = location.href;
  const { limit, filters = settings.filters } = element.dataset;
  const number = Math.min(MAX_PAGES, Math.max(1, Number.parseInt(limit, 10) || DEFAULT_PAGES));
  let pages = [];
  try {
    pages = await fetchPages(BASE, settings.key, { limit: number, ...(filters && { filters }) });
  } catch (error) {
    console.error(error);
  }
  if (location.href === page) render(element, settings, pages);
}

/** Fills the page's elements for related pages when they come near the window, and again after the page has changed. */
export function showRelated(BASE, settings) {
  for (const element of document.querySelectorAll('[data-site-search="related"]')) {
    const page = location.href.split("#")[0];
    if (shown.get(element) === page) continue;
    if (shown.has(element)) element.shadowRoot?.replaceChildren(); // The list of the previous page.
    shown.set(element, page);
    new IntersectionObserver((entries, observer) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
      observer.disconnect();
      fill(BASE, settings, element);
    }, { rootMargin: `${NEAR_PX}px` }).observe(element);
  }
}
