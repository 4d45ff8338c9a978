// Optional script of all pages: adds a button that copies the code beside it.
"use strict";

for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) break;
  button.hidden = false;
  button.addEventListener("click", async () => {
    const text = button.parentElement.querySelector("code").textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select the text and copy it";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}

// Shows only the fields that a key of the chosen type can have, and sends no others.
for (const form of new Set([...document.querySelectorAll("[data-only]")].map((part) => part.closest("form")))) {
  const show = () => {
    for (const part of form.querySelectorAll("[data-only]")) {
      part.hidden = part.dataset.only !== form.elements.type.value;
      for (const control of part.querySelectorAll("input, textarea")) control.disabled = part.hidden;
    }
  };
  form.addEventListener("change", show);
  addEventListener("pageshow", show); // The browser may restore the choice after this script.
  show();
}

// Proposes the format of a file to import, and asks for what is missing before the file is sent: browsers forget a chosen
// file when the form comes back with an error.
const FORMATS = { csv: "csv", json: "jsonl", jsonl: "jsonl", ndjson: "jsonl", xml: "wxr" };
const PAGE_FILE = /\.(pdf|docx|pptx|xlsx|odt|odp|ods|epub|html?|md|markdown|txt)$/i;
for (const file of document.querySelectorAll("input[type=file]")) {
  const { format, url } = file.form.elements;
  const check = () => { url.required = format.value === "file"; };
  file.addEventListener("change", () => {
    const name = file.files[0]?.name ?? "";
    format.value ||= PAGE_FILE.test(name) ? "file" : FORMATS[name.split(".").pop().toLowerCase()] ?? "";
    check();
  });
  format.addEventListener("change", check);
  addEventListener("pageshow", check); // The browser may restore the format after this script.
}

// Marks a form that is being sent as busy, so that it isn't sent twice. The button's own value is sent, because browsers
// collect the values before the timer fires.
const BUSY_MS = 30_000; // A download or a stopped request leaves the page as it is.
document.addEventListener("submit", (event) => {
  if (event.defaultPrevented) return;
  const buttons = [...event.target.elements].filter((control) => control.type === "submit" && !control.disabled);
  const release = () => {
    event.submitter?.removeAttribute("aria-busy");
    for (const button of buttons) button.disabled = false;
  };
  setTimeout(() => {
    event.submitter?.setAttribute("aria-busy", "true");
    for (const button of buttons) button.disabled = true;
  });
  setTimeout(release, BUSY_MS);
  addEventListener("pageshow", release, { once: true }); // The page came from the browser's cache.
});

// Charts show the values at the pointer, or at the point selected with the arrow keys. They come from the chart's table.
const STEPS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -7, PageUp: 7, Home: -Infinity, End: Infinity };

function explore(chart) {
  const plot = chart.querySelector(".plot");
  const drawing = plot.querySelector("svg");
  const names = [...chart.querySelectorAll("thead th")].map((cell) => cell.textContent);
  const rows = [...chart.querySelectorAll("tbody tr")];
  if (rows[0].querySelector("time")) rows.reverse(); // Days are listed latest first.
  const last = rows.length - 1;
  const [marker, values] = ["marker", "values"].map((name) => Object.assign(document.createElement("div"), { className: name }));
  let current = last;

  function show(row) {
    current = Math.max(0, Math.min(last, row));
    const [point, ...cells] = [...rows[current].cells].map((cell) => cell.textContent);
    const text = `${point}: ${cells.map((cell, index) => `${names[index + 1].toLowerCase()} ${cell}`).join(", ")}`;
    drawing.setAttribute("aria-valuenow", current + 1);
    drawing.setAttribute("aria-valuetext", text);
    values.textContent = text;
    plot.append(marker, values);
    const [inner, outer] = [drawing.getBoundingClientRect(), plot.getBoundingClientRect()];
    const x = inner.left - outer.left + inner.width * (current + 0.5) / rows.length;
    marker.style.left = `${x}px`;
    values.style.left = `${Math.max(0, Math.min(outer.width - values.offsetWidth, x - values.offsetWidth / 2))}px`;
  }

  const hide = () => [marker, values].forEach((part) => part.remove());
  const attributes = { role: "slider", tabindex: 0, "aria-valuemin": 1, "aria-valuemax": rows.length, "aria-valuenow": current + 1, "aria-valuetext": rows[current].cells[0].textContent };
  for (const [name, value] of Object.entries(attributes)) drawing.setAttribute(name, value);
  drawing.addEventListener("focus", () => show(current));
  drawing.addEventListener("blur", hide);
  drawing.addEventListener("keydown", (event) => {
    if (!(event.key in STEPS)) return;
    event.preventDefault();
    show(current + STEPS[event.key]);
  });
  drawing.addEventListener("pointermove", ({ clientX }) => {
    const { left, width } = drawing.getBoundingClientRect();
    show(Math.floor(rows.length * (clientX - left) / width));
  });
  drawing.addEventListener("pointerleave", () => document.activeElement === drawing || hide());
}

for (const chart of document.querySelectorAll(".chart")) explore(chart);

// Refreshes live parts, such as the progress of a crawl, until they end.
async function refreshLiveParts() {
  const parts = [...document.querySelectorAll("[data-live]")];
  if (!parts.length) return;
  const pause = Math.min(...parts.map((part) => Number(part.dataset.live)));
  await new Promise((resolve) => { setTimeout(resolve, 1000 * pause); });
  try {
    const response = document.hidden ? null : await fetch(location.href, { headers: { Accept: "text/html" } });
    if (response?.ok) {
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      for (const part of parts) replace(part, page);
    }
  } catch {
    // Without a network, the next refresh tries again.
  }
  refreshLiveParts();
}

function replace(part, page) {
  const updated = page.getElementById(part.id);
  if (!updated || part.querySelector("details[open]") && "live" in updated.dataset) return;
  const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
  part.replaceWith(document.adoptNode(updated));
  if (focused) document.getElementById(focused)?.focus();
  if ("live" in updated.dataset) return;
  document.querySelector(".notice")?.remove();
  const end = document.getElementById("live-end");
  const title = updated.querySelector("h1");
  if (end && title) end.textContent = title.textContent;
}

refreshLiveParts();
