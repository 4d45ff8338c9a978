// Optional script for forms of rows: adds rows and, for search settings, finds pages by title and updates the preview
// while the user types.
"use strict";

(() => {
  const form = document.querySelector("[data-rows-form]");
  if (!form) return;

  // Old links may lead to a setting that has moved to a page of its own.
  const anchor = decodeURIComponent(location.hash.slice(1));
  if (anchor && !document.getElementById(anchor)) {
    const menu = [...document.querySelectorAll("[data-settings]")];
    const target = menu.find((link) => link.dataset.settings.split(" ").some((name) => anchor.startsWith(name)));
    if (target && !target.hasAttribute("aria-current")) location.replace(target.href + location.hash);
  }

  let lastNumber = 1e6; // Number of the next new row, above those of existing rows.

  // --- Rows

  const renumber = (row, name, from, to) => {
    for (const attribute of ["id", "name", "for", "aria-describedby", "data-pages"]) {
      for (const element of row.querySelectorAll(`[${attribute}]`)) {
        const value = element.getAttribute(attribute);
        element.setAttribute(attribute, value.replaceAll(`${name}.${from}`, `${name}.${to}`));
      }
    }
    row.id = `${name}-row-${to}`;
  };

  for (const button of form.querySelectorAll("[data-add]")) {
    const list = form.querySelector(`[data-rows="${button.dataset.add}"]`);
    const blank = list.lastElementChild.cloneNode(true);
    const number = list.children.length - 1;
    if (number) list.lastElementChild.remove();
    button.hidden = false;
    button.addEventListener("click", () => {
      const row = blank.cloneNode(true);
      renumber(row, button.dataset.add, number, lastNumber += 1);
      list.append(row);
      prepare(row);
      row.querySelector("input, select").focus();
    });
  }

  /** Give a row a button that removes it, and its lists of pages a picker. */
  function prepare(row) {
    const remove = document.createElement("button");
    remove.type = "button";
    remove.className = "link";
    remove.textContent = "Remove";
    remove.setAttribute("aria-label", `Remove row ${[...row.parentElement.children].indexOf(row) + 1}`);
    remove.addEventListener("click", () => {
      const add = form.querySelector(`[data-add="${row.parentElement.dataset.rows}"]`);
      row.remove();
      add.focus();
      updatePreview();
    });
    row.append(remove);
    row.querySelectorAll("[data-pages]").forEach(addPagePicker);
  }

  // --- Find pages by title

  const findPages = async (query) => {
    const parameters = new URLSearchParams({ q: query, fields: "id,title,url", limit: 8, facets: "", highlight: "false" });
    const response = await fetch(`${form.dataset.try}?${parameters}`, { headers: { Accept: "application/json" } });
    return response.ok ? (await response.json()).results.hits : [];
  };

  function addPagePicker(list) {
    const name = list.dataset.pages;
    const field = list.querySelector("input[type=text]");
    const options = document.createElement("datalist");
    options.id = `${field.id}-options`;
    field.setAttribute("list", options.id);
    field.after(options);
    let pagesByOption = new Map();
    let timer = 0;
    field.addEventListener("input", (event) => {
      event.stopPropagation();
      clearTimeout(timer);
      if (pagesByOption.has(field.value)) {
        add(pagesByOption.get(field.value));
        field.value = "";
        options.replaceChildren();
        updatePreview();
        return;
      }
      if (field.value.trim()) timer = setTimeout(showOptions, 200);
    });
    field.addEventListener("keydown", (event) => {
      // The server looks up text that isn't selected from the list. Enter must not submit the form.
      if (event.key === "Enter") {
        event.preventDefault();
        updatePreview();
      }
    });

    async function showOptions() {
      const typed = field.value;
      const hits = await findPages(typed);
      if (typed !== field.value) return;
      pagesByOption = new Map(hits.map((hit) => [`${hit.title} · ${hit.url}`, hit]));
      options.replaceChildren(...[...pagesByOption.keys()].map((text) => Object.assign(document.createElement("option"), { value: text })));
    }

    function add(hit) {
      if ([...list.querySelectorAll("[type=checkbox]")].some((box) => box.value === hit.id)) return;
      const line = document.createElement("div");
      line.className = "check";
      const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: true, value: hit.id });
      box.name = `${name}.pages`;
      box.id = `${name}-picked-${lastNumber += 1}`;
      const label = Object.assign(document.createElement("label"), { htmlFor: box.id, textContent: hit.title || hit.url });
      line.append(box, label);
      field.closest(".field:not(fieldset)").before(line);
    }
  }

  // --- Preview while the user types

  let previewTimer = 0;
  let lastRequest = 0;
  let shownState = "";
  const state = () => new URLSearchParams(new FormData(form)).toString();

  function updatePreview() {
    if (!form.dataset.try) return;
    clearTimeout(previewTimer);
    previewTimer = setTimeout(async () => {
      const body = state();
      if (!form.elements.query.value.trim() || body === shownState) return;
      shownState = body;
      const number = lastRequest += 1;
      const response = await fetch(form.dataset.preview, {
        method: "POST",
        headers: { Accept: "text/html", "Content-Type": "application/x-www-form-urlencoded", "X-CSRF-Token": form.elements.csrf_token.value },
        body: `${body}&part=results`,
      }).catch(() => null);
      if (number !== lastRequest || !response) return;
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const results = page.getElementById("results") ?? page.querySelector("main");
      document.getElementById("results").replaceChildren(...document.adoptNode(results).childNodes);
    }, 500);
  }

  if (form.dataset.try) for (const type of ["input", "change"]) form.addEventListener(type, updatePreview);
  for (const row of form.querySelectorAll("[data-rows] > li")) prepare(row);
  shownState = state();
})();
