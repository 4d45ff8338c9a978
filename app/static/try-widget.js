// Search box designer, on a page of the documentation and on each site's own page.
"use strict";

(() => {
  const section = document.getElementById("try-it");
  const form = document.getElementById("try-options");
  const host = document.getElementById("site-search");
  const results = document.getElementById("try-view");
  const code = document.getElementById("try-code");
  const empty = document.getElementById("try-empty");
  const log = document.getElementById("try-events");
  const base = section.dataset.base;
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];

  // Example code for options that are functions.
  const FUNCTIONS = {
    transform: {
      code: "(hits) => hits.map((hit, at) => ({ ...hit, title: `${at + 1}. ${hit.title}` }))",
      work: (hits) => hits.map((hit, at) => ({ ...hit, title: `${at + 1}. ${hit.title}` })),
    },
    onSelect: {
      code: "(hit) => { console.log(hit.url); return false; }",
      work: (hit) => { console.log(hit.url); return false; },
    },
    renderHit: {
      code: "(hit, html) => html`<strong>${hit.marked.title}</strong> <em>${hit.author}</em><p>${hit.marked.snippet}</p>`",
      work: (hit, html) => html`<strong>${hit.marked.title}</strong> <em>${hit.author}</em><p>${hit.marked.snippet}</p>`,
    },
  };

  const value = (name) => form.elements[name].value.trim();
  const isOn = (name) => form.elements[name].checked;

  /** The options that differ from what the box does anyway, as attributes have them. */
  function readOptions() {
    const wished = {
      key: value("key"), placeholder: value("placeholder"), limit: value("limit"), min: value("min"), lang: value("lang"), theme: value("theme"),
      mode: value("mode"), recent: isOn("recent") ? "true" : "", shortcut: isOn("shortcut") ? "false" : "",
      resultsUrl: value("results") === "url" ? value("url") || location.pathname : "", facets: value("facets"), sort: value("sort"), filters: value("filters"),
      show: value("show"), fields: value("fields"),
    };
    return Object.fromEntries(Object.entries(wished).filter(([, text]) => text));
  }

  function readTexts() {
    const pairs = value("texts").split("\n").map((line) => line.split(/=(.*)/s).map((part) => part?.trim())).filter(([name, text]) => name && text);
    return Object.fromEntries(pairs);
  }

  function readCss() {
    const names = [...form.elements].map((field) => field.name).filter((name) => name.startsWith("variable-") && value(name));
    const variables = names.map((name) => `  --site-search-${name.slice("variable-".length)}: ${value(name)};\n`).join("");
    return [variables && `:root {\n${variables}}`, value("css")].filter(Boolean).join("\n");
  }

  // --- Code

  const attribute = (text) => text.replace(/&/g, "&amp;").replace(/"/g, "&quot;").replace(/</g, "&lt;");
  const literal = (thing) => JSON.stringify(thing).replace(/</g, "\\u003c");
  const dashed = (name) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

  function writeCode(options, texts, functions, css) {
    const lines = css ? [`<style>\n${css.replace(/<\//g, "<\\/")}\n</style>`] : [];
    lines.push('<div id="site-search"></div>');
    if (value("results") === "container") lines.push("<div data-site-search-results></div>");
    const { key = "svc_pub_…", ...others } = options;
    if (!functions.length && !Object.keys(texts).length && !others.filters) {
      const data = Object.entries({ key, ...others }).map(([name, text]) => ` data-${dashed(name)}="${attribute(text)}"`).join("");
      lines.push(`<script src="${base}/widget.js"${data} async></script>`);
    } else {
      const given = Object.entries({ key, ...others }).map(([name, text]) => `${name}: ${literal(text)}`);
      if (Object.keys(texts).length) given.push(`texts: ${literal(texts)}`);
      for (const name of functions) given.push(`${name}: ${FUNCTIONS[name].code}`);
      const call = `SiteSearch.mount(document.querySelector("#site-search"), {\n${given.map((one) => `  ${one},\n`).join("")}});`;
      lines.push(`<script src="${base}/widget.js"></script>`, `<script>\n${call}\n</script>`);
    }
    code.textContent = lines.join("\n");
  }

  // --- Search box

  let box = null;
  let shown = "";
  const wishes = () => new URLSearchParams(new FormData(form)).toString();

  function leaveResults() {
    // A query in the URL belongs to the previous search box.
    const address = new URL(location.href);
    for (const name of [...address.searchParams.keys()]) if (/^(q|page|sort|f\..+)$/.test(name)) address.searchParams.delete(name);
    if (address.href !== location.href) history.replaceState(null, "", address);
  }

  function show() {
    shown = wishes();
    const options = readOptions();
    const texts = readTexts();
    const functions = [...(isOn("transform") ? ["transform"] : []), ...(isOn("select") ? ["onSelect"] : []), ...(isOn("render") ? ["renderHit"] : [])];
    const css = readCss();
    writeCode(options, texts, functions, css);
    sheet.replaceSync(css);
    host.parentElement.dir = isOn("rtl") ? "rtl" : "";
    box?.unmount();
    box = null;
    results.hidden = value("results") !== "container";
    results.toggleAttribute("data-site-search-results", !results.hidden);
    const isPublic = (options.key || "").startsWith("svc_pub_");
    empty.textContent = isPublic ? "" : options.key ? "Use only a public key (svc_pub_…) in a page." : "Enter a public key below to show the search box here.";
    if (!isPublic) return;
    const made = Object.fromEntries(functions.map((name) => [name, FUNCTIONS[name].work]));
    box = window.SiteSearch.mount(host, { ...options, texts, ...made });
  }

  let waiting = 0;
  for (const type of ["input", "change"]) {
    form.addEventListener(type, () => {
      if (wishes() === shown) return; // Leaving a field without a change must not rebuild the box, which the user may be about to use.
      clearTimeout(waiting);
      waiting = setTimeout(() => {
        leaveResults();
        show();
      }, 300);
    });
  }
  form.addEventListener("submit", (event) => event.preventDefault());

  for (const type of ["search", "select", "error"]) {
    section.addEventListener(`site-search:${type}`, (event) => {
      const detail = { ...event.detail, ...(event.detail.hits && { hits: `${event.detail.hits.length} hits` }) };
      const line = document.createElement("li");
      line.textContent = `site-search:${type} ${JSON.stringify(detail)}`;
      log.prepend(line);
      while (log.children.length > 5) log.lastElementChild.remove();
      document.getElementById("try-no-events").hidden = true;
    });
  }

  section.hidden = false;
  show();
})();
