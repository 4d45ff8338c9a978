// Optional script for forms of rows: adds rows and, for search settings, finds pages by title and updates the preview
// while the user types.
"use strict";

(() => {
  const form = document.querySelector("[data-rows-form]");
  if (!form) return;

  // Links from before the settings had pages of their own lead to the page that has the setting.
  const anchor = decodeURIComponent(location.hash.slice(1));
  if (anchor && !document.getElementById(anchor)) {
    const menu = [...document.querySelectorAll("[data-settings]")];
    const target = menu.find((link) => link.dataset.settings.split(" ").some((name) => anchor.startsWith(name)));
    if (target && !target.hasAttribute("aria-current")) location.replace(target.href + location.hash);
  }

  let made = 1e6; // Number of the next new row, above those of existing rows.

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
      renumber(row, button.dataset.add, number, made += 1);
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
      look();
    });
    row.append(remove);
    row.querySelectorAll("[data-pages]").forEach(pick);
  }

  // --- Find pages by title

  const ask = async (query) => {
    const given = new URLSearchParams({ q: query, fields: "id,title,url", limit: 8, facets: "", highlight: "false" });
    const answer = await fetch(`${form.dataset.try}?${given}`, { headers: { Accept: "application/json" } });
    return answer.ok ? (await answer.json()).results.hits : [];
  };

  function pick(list) {
    const name = list.dataset.pages;
    const field = list.querySelector("input[type=text]");
    const options = document.createElement("datalist");
    options.id = `${field.id}-options`;
    field.setAttribute("list", options.id);
    field.after(options);
    let found = new Map();
    let waiting = 0;
    field.addEventListener("input", (event) => {
      event.stopPropagation();
      clearTimeout(waiting);
      if (found.has(field.value)) {
        add(found.get(field.value));
        field.value = "";
        options.replaceChildren();
        look();
        return;
      }
      if (field.value.trim()) waiting = setTimeout(offer, 200);
    });
    field.addEventListener("keydown", (event) => {
      // The server looks up text that isn't selected from the list. Enter must not submit the form.
      if (event.key === "Enter") {
        event.preventDefault();
        look();
      }
    });

    async function offer() {
      const typed = field.value;
      const hits = await ask(typed);
      if (typed !== field.value) return;
      found = new Map(hits.map((hit) => [`${hit.title} · ${hit.url}`, hit]));
      options.replaceChildren(...[...found.keys()].map((text) => Object.assign(document.createElement("option"), { value: text })));
    }

    function add(hit) {
      if ([...list.querySelectorAll("[type=checkbox]")].some((box) => box.value === hit.id)) return;
      const line = document.createElement("div");
      line.className = "check";
      const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: true, value: hit.id });
      box.name = `${name}.pages`;
      box.id = `${name}-picked-${made += 1}`;
      const label = Object.assign(document.createElement("label"), { htmlFor: box.id, textContent: hit.title || hit.url });
      line.append(box, label);
      field.closest(".field:not(fieldset)").before(line);
    }
  }

  // --- Preview while the user types

  let waiting = 0;
  let asked = 0;
  let shown = "";
  const state = () => new URLSearchParams(new FormData(form)).toString();

  function look() {
    if (!form.dataset.try) return;
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const body = state();
      if (!form.elements.query.value.trim() || body === shown) return;
      shown = body;
      const turn = asked += 1;
      const answer = await fetch(form.dataset.preview, {
        method: "POST",
        headers: { Accept: "text/html", "Content-Type": "application/x-www-form-urlencoded", "X-CSRF-Token": form.elements.csrf_token.value },
        body: `${body}&part=results`,
      }).catch(() => null);
      if (turn !== asked || !answer) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const results = page.getElementById("results") ?? page.querySelector("main");
      document.getElementById("results").replaceChildren(...document.adoptNode(results).childNodes);
    }, 500);
  }

  if (form.dataset.try) for (const type of ["input", "change"]) form.addEventListener(type, look);
  for (const row of form.querySelectorAll("[data-rows] > li")) prepare(row);
  shown = state();
})();
