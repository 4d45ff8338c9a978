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

// Refreshes live parts, such as the progress of a crawl, until they end.
async function follow() {
  const part = document.querySelector("[data-live]");
  if (!part) return;
  await new Promise((resolve) => { setTimeout(resolve, 1000 * part.dataset.live); });
  try {
    const answer = document.hidden ? null : await fetch(location.href, { headers: { Accept: "text/html" } });
    if (answer?.ok) replace(part, new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch {
    // Without a network, the next refresh tries again.
  }
  follow();
}

function replace(part, page) {
  const fresh = page.getElementById(part.id);
  if (!fresh || part.querySelector("details[open]") && "live" in fresh.dataset) return;
  const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
  part.replaceWith(document.adoptNode(fresh));
  if (focused) document.getElementById(focused)?.focus();
  if ("live" in fresh.dataset) return;
  document.querySelector(".notice")?.remove();
  const end = document.getElementById("live-end");
  if (end) end.textContent = fresh.querySelector("h1").textContent;
}

follow();
