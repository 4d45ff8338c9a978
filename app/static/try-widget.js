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
      work: (hits) => hits.map((hit, index) => ({ ...hit, title: `${index + 1}. ${hit.title}` })),
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

  // The site's page has different fields from the documentation page.
  const value = (name) => form.elements[name]?.value.trim() ?? "";
  const isOn = (name) => form.elements[name]?.checked ?? false;
  const chosen = (kind) => [...form.elements].filter(({ name, checked }) => name.startsWith(`${kind}-`) && checked).map(({ name }) => name.slice(kind.length + 1));
  const isDesigner = section.classList.contains("designer");
  const clientInfo = section.dataset.clientInfo && JSON.parse(section.dataset.clientInfo);

  /** Return the options that differ from the defaults, as values of attributes. */
  function readOptions() {
    const values = {
      key: value("key"), placeholder: value("placeholder"), limit: value("limit"), min: value("min"), lang: value("lang"), theme: value("theme"),
      mode: value("mode") || (value("placement") === "modal" ? "modal" : ""), recent: isOn("recent") ? "true" : "", shortcut: isOn("shortcut") ? "false" : "",
      resultsUrl: value("results") === "url" || value("placement") === "page" ? value("url") || location.pathname : "", facets: value("facets"), sort: value("sort"), filters: value("filters"),
      show: value("show"), fields: value("fields"), sections: value("sections"), group: value("group"), context: value("context"),
    };
    const options = Object.fromEntries(Object.entries(values).filter(([, text]) => text));
    if (!isDesigner) return options;
    const visibleFields = chosen("show");
    const context = chosen("context");
    return { ...options, ...(visibleFields.length < 3 && { show: visibleFields.join() }), ...(context.length && { context: context.join() }) };
  }

  function readTexts() {
    const pairs = value("texts").split("\n").map((line) => line.split(/=(.*)/s).map((part) => part?.trim())).filter(([name, text]) => name && text);
    const customTexts = [...form.elements].filter(({ name }) => name.startsWith("text-") && value(name)).map(({ name }) => [name.slice("text-".length), value(name)]);
    return Object.fromEntries([...pairs, ...customTexts]);
  }

  // --- Colors

  // Accent color and background of the selected result, for light and dark pages. They meet WCAG contrast on all backgrounds of the box.
  const PRESETS = {
    indigo: { accent: ["#3f3aa8", "#b0b4ff"], chosen: ["#ecebfb", "#272a4b"] },
    ruby: { accent: ["#97184a", "#ff9fbe"], chosen: ["#fbeaf0", "#3f2230"] },
  };
  const GROUNDS = ["#ffffff", "#1a2128"];
  const MARKS = ["#fff0b3", "#52430a"];
  const AA = 4.5;

  const channels = (color) => [1, 3, 5].map((start) => Number.parseInt(color.slice(start, start + 2), 16));
  const mixed = (color, other, share) =>
    `#${channels(color).map((channel, index) => Math.round(channel + (channels(other)[index] - channel) * share).toString(16).padStart(2, "0")).join("")}`;

  function luminance(color) {
    const [red, green, blue] = channels(color).map((channel) => (channel <= 10 ? channel / 3294.6 : ((channel / 255 + .055) / 1.055) ** 2.4));
    return .2126 * red + .7152 * green + .0722 * blue;
  }

  function contrast(first, second) {
    const [dark, light] = [luminance(first), luminance(second)].sort((a, b) => a - b);
    return (light + .05) / (dark + .05);
  }

  /** Return the lowest contrast of a color with the backgrounds behind it, on light (0) or dark (1) pages. */
  const worst = (color, theme) => Math.min(...[GROUNDS[theme], mixed(GROUNDS[theme], color, .12), MARKS[theme]].map((ground) => contrast(color, ground)));

  /** Return the nearest color with enough contrast: darker for light pages, lighter for dark ones. */
  function legible(color, theme) {
    const steps = Array.from({ length: 41 }, (_, step) => mixed(color, theme ? "#ffffff" : "#000000", step / 40));
    return steps.find((candidate) => worst(candidate, theme) >= AA);
  }

  function customColors() {
    const color = value("accent");
    const pair = [color, legible(color, 1)];
    return { accent: pair, chosen: pair.map((shade, theme) => mixed(GROUNDS[theme], shade, .12)) };
  }

  function designCss() {
    const colors = value("color") === "own" ? customColors() : PRESETS[value("color")] ?? {};
    const theme = { light: 0, dark: 1 }[value("theme")];
    const variables = Object.entries(colors).map(([name, pair]) => `  --site-search-${name}: ${theme === undefined ? `light-dark(${pair.join(", ")})` : pair[theme]};\n`);
    const font = value("font") === "own" ? value("font-name") && `"${value("font-name").replace(/["\\<>]/g, "")}", sans-serif` : value("font");
    if (font) variables.push(`  --site-search-font: ${font};\n`);
    if (value("radius")) variables.push(`  --site-search-radius: ${value("radius")};\n`);
    return variables.length ? `:root {\n${variables.join("")}}` : "";
  }

  function showContrast() {
    const message = document.getElementById("try-contrast");
    const color = value("accent");
    const ratio = worst(color, 0);
    const isFailing = ratio < AA && value("theme") !== "dark";
    message.classList.toggle("problem", isFailing);
    message.textContent = isFailing
      ? `Hard to read on light pages: contrast ${ratio.toFixed(1)}, but ${AA} is needed. ${legible(color, 0)} is the nearest color that works.`
      : "Easy to read. Dark pages get a lighter shade of it.";
  }

  function showDesign() {
    document.getElementById("try-page").hidden = value("placement") !== "page";
    document.getElementById("try-own").hidden = value("color") !== "own";
    document.getElementById("try-own-font").hidden = value("font") !== "own";
    section.dataset.placement = value("placement");
    for (const card of [host.parentElement, results]) card.dataset.scheme = value("theme");
    showContrast();
  }

  function readCss() {
    if (isDesigner) return designCss();
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
    const { key = "svc_pub_…", ...otherOptions } = options;
    if (!functions.length && !Object.keys(texts).length && (isDesigner || !otherOptions.filters)) {
      const data = Object.entries({ key, ...otherOptions }).map(([name, text]) => ` data-${dashed(name)}="${attribute(text)}"`).join("");
      lines.push(`<script src="${base}/widget.js"${data} async></script>`);
    } else {
      const optionLines = Object.entries({ key, ...otherOptions }).map(([name, text]) => `${name}: ${literal(text)}`);
      if (Object.keys(texts).length) optionLines.push(`texts: ${literal(texts)}`);
      for (const name of functions) optionLines.push(`${name}: ${FUNCTIONS[name].code}`);
      const call = `SiteSearch.mount(document.querySelector("#site-search"), {\n${optionLines.map((line) => `  ${line},\n`).join("")}});`;
      lines.push(`<script src="${base}/widget.js"></script>`, `<script>\n${call}\n</script>`);
    }
    code.textContent = lines.join("\n");
  }

  // --- Search box

  const field = () => host.shadowRoot?.querySelector("input[type=search]");
  let box = null;
  let shownState = "";
  const formState = () => new URLSearchParams(new FormData(form)).toString();

  function removeQueryFromUrl() {
    // A query in the URL belongs to the previous search box.
    const url = new URL(location.href);
    for (const name of [...url.searchParams.keys()]) if (/^(q|page|sort|f\..+)$/.test(name)) url.searchParams.delete(name);
    if (url.href !== location.href) history.replaceState(null, "", url);
  }

  function show() {
    shownState = formState();
    const options = readOptions();
    const texts = readTexts();
    const functions = [...(isOn("transform") ? ["transform"] : []), ...(isOn("select") ? ["onSelect"] : []), ...(isOn("render") ? ["renderHit"] : [])];
    const css = readCss();
    writeCode(options, texts, functions, css);
    sheet.replaceSync(css);
    host.parentElement.dir = isOn("rtl") ? "rtl" : "";
    // A query stays, so that the user sees what a choice changes.
    const query = field()?.value ?? section.dataset.query ?? "";
    box?.unmount();
    box = null;
    if (isDesigner) showDesign();
    results.hidden = !isDesigner && value("results") !== "container";
    if (results.hidden) results.removeAttribute("data-site-search-results");
    else results.dataset.siteSearchResults = host.id; // The documentation's own search box is on the page, too.
    const isPublic = (options.key || "").startsWith("svc_pub_");
    empty.textContent = isPublic ? "" : options.key ? "Use only a public key (svc_pub_…) in a page." : "Enter a public key below to show the search box here.";
    if (!isPublic) return;
    const callbacks = Object.fromEntries(functions.map((name) => [name, FUNCTIONS[name].work]));
    const preview = isDesigner ? { limit: 3, ...options, clientInfo, onSelect: () => false } : options;
    box = window.SiteSearch.mount(host, { ...preview, analytics: value("analytics"), texts, ...callbacks });
    if (!query) return;
    field().value = query;
    for (const type of ["input", "focus"]) field().dispatchEvent(new Event(type)); // The focus loads the button "Ask".
  }

  let timer = 0;
  for (const type of ["input", "change"]) {
    form.addEventListener(type, () => {
      if (formState() === shownState) return; // If the user only leaves a field, keep the box, because it may be in use.
      clearTimeout(timer);
      timer = setTimeout(() => {
        if (!isDesigner) removeQueryFromUrl();
        show();
      }, 300);
    });
  }
  form.addEventListener("submit", (event) => event.preventDefault());

  if (log) for (const type of ["search", "select", "error"]) {
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
