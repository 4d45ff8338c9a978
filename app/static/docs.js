// Optional script of the documentation: inserts the reader's key into examples, remembers the language of examples, and sends
// requests from forms.
"use strict";

(() => {
  // --- Moved sections

  function findMoved() {
    const anchor = decodeURIComponent(location.hash.slice(1));
    if (!anchor || document.getElementById(anchor)) return "";
    const moved = JSON.parse(document.querySelector("[data-moved]").dataset.moved)[anchor];
    if (moved) return `/docs/${moved}`;
    if (location.pathname !== "/docs") return "";
    if (anchor.startsWith("operation-")) return `/docs/reference#${anchor}`;
    if (anchor.startsWith("schema-")) return `/docs/reference/schemas#${anchor}`;
    if (anchor.startsWith("group-")) return `/docs/reference/${anchor.slice("group-".length)}`;
    return anchor === "api-reference" ? "/docs/reference" : `/docs/readme#${anchor}`;
  }

  const moved = findMoved();
  if (moved) location.replace(moved);

  // Show elements that need scripts, for browsers in which the style sheet can't detect scripts.
  for (const part of document.querySelectorAll(".scripted")) part.classList.remove("scripted");

  // --- Mark the current section in the list of sections

  const links = new Map([...document.querySelectorAll(".on-page a")].map((link) => [decodeURIComponent(link.hash.slice(1)), link]));
  const headings = [...links.keys()].map((anchor) => document.getElementById(anchor)).filter(Boolean);

  function markSection() {
    const isAtEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 1;
    const past = headings.filter((heading) => heading.getBoundingClientRect().top < innerHeight / 3);
    const current = isAtEnd && scrollY ? headings.at(-1) : past.at(-1);
    for (const [anchor, link] of links) {
      if (anchor === current?.id) link.setAttribute("aria-current", "location");
      else link.removeAttribute("aria-current");
    }
  }

  if (headings.length) {
    addEventListener("scroll", markSection, { passive: true });
    markSection();
  }

  // --- Language of examples

  document.addEventListener("change", ({ target }) => {
    if (!target.name?.startsWith("language-")) return;
    document.cookie = `docs_language=${target.value}; path=/docs; max-age=31536000; samesite=lax`;
    for (const other of document.querySelectorAll(`input[name^="language-"][value="${target.value}"]`)) other.checked = true;
  });

  // --- The reader's key, which stays in this tab and is sent only as the key of requests

  const TRIAL_NAME = "Trying out the documentation";
  const DAY_MS = 86_400_000;
  const form = document.getElementById("docs-key-form");
  const field = document.getElementById("docs-key");
  const keyMessage = document.getElementById("docs-key-told");
  const placeholders = [...document.querySelectorAll("code .own")].map((element) => ({ element, placeholder: element.textContent }));

  const readKey = () => sessionStorage.getItem("docs-key") ?? "";

  /** "YOUR_SITE" -> "7", the reader's own site; "" if the value is unknown. */
  function readerValue(placeholder) {
    const key = readKey();
    const site = sessionStorage.getItem("docs-site") ?? "";
    if (placeholder === "YOUR_SITE") return site;
    if (placeholder === "YOUR_INDEX") return site && `site_${site}`;
    // The guides' commands need a private key. Invalid keys are not inserted.
    return (placeholder.startsWith("svc_prv_") ? /^svc_prv_\w+$/ : /^svc_\w+$/).test(key) ? key : "";
  }

  function storeKey(key, site) {
    for (const [name, value] of [["docs-key", key], ["docs-site", site]]) {
      if (value) sessionStorage.setItem(name, value);
      else sessionStorage.removeItem(name);
    }
    fillIn();
  }

  function fillIn() {
    for (const { element, placeholder } of placeholders) element.textContent = readerValue(placeholder) || placeholder;
    for (const input of document.querySelectorAll("[data-own]")) input.value = readerValue(input.dataset.own);
  }

  /** Check whether a key works, and which site it belongs to. */
  async function lookUp(key) {
    keyMessage.textContent = "";
    if (!key) return;
    try {
      const response = await fetch("/v1/client-info", { headers: { Authorization: `Bearer ${key}` }, credentials: "omit" });
      const info = await response.json();
      if (field.value.trim() !== key) return; // The reader has entered another key in the meantime.
      keyMessage.textContent = response.ok ? `The key works; its site is ${info.domain}.` : info.message;
      if (response.ok) storeKey(key, /^site_(\d+)$/.exec(info.index)?.[1]);
    } catch (error) {
      keyMessage.textContent = `No response: ${error.message}`;
    }
  }

  if (form) {
    field.value = readKey();
    field.addEventListener("input", () => storeKey(field.value.trim(), ""));
    field.addEventListener("change", () => lookUp(field.value.trim()));
    form.addEventListener("submit", (event) => event.preventDefault());
    document.getElementById("docs-make")?.addEventListener("click", makeKey);
  }
  fillIn();

  async function manage(path, method = "GET", body = undefined) {
    const headers = { Accept: "application/json", "X-CSRF-Token": form.elements.csrf_token.value };
    if (body) headers["Content-Type"] = "application/json";
    const response = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
    const content = await response.json();
    if (!response.ok) throw new Error(content.message);
    return content;
  }

  /** Create a key that expires in a day, and delete the previous one so that it doesn't use up the plan's keys. */
  async function makeKey({ target }) {
    const site = document.getElementById("docs-site").value;
    target.disabled = true;
    try {
      const { keys } = await manage(`/api/sites/${site}/keys?limit=100`);
      for (const old of keys.filter((key) => key.name === TRIAL_NAME && key.expires_at)) {
        await manage(`/api/sites/${site}/keys/${old.id}`, "DELETE");
      }
      const expires_at = new Date(Date.now() + DAY_MS).toISOString();
      const created = await manage(`/api/sites/${site}/keys`, "POST", { name: TRIAL_NAME, type: "private", expires_at });
      field.value = created.api_key;
      storeKey(created.api_key, site);
      keyMessage.textContent = "Key created. It is in the code below and expires in a day.";
    } catch (error) {
      keyMessage.textContent = error.message;
    } finally {
      target.disabled = false;
    }
  }

  // --- Forms that send requests

  const SHOWN_HEADERS = ["Content-Type", "Location", "Allow", "Retry-After", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-Request-Id"];
  const MAX_CHARACTERS = 100_000;

  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) if (value !== false) element.setAttribute(name, value === true ? "" : value);
    element.append(...children);
    return element;
  }

  for (const details of document.querySelectorAll("details.trial")) {
    details.addEventListener("toggle", () => { if (details.open && !details.querySelector("form")) build(details); });
  }

  function labelled(id, label, input) {
    input.id = id;
    return make("div", { class: "field" }, make("label", { for: id }, label), input);
  }

  function parameterField(operation, parameter) {
    const id = `${operation.name}-${parameter.in}-${parameter.name}`;
    const name = `${parameter.in}.${parameter.name}`;
    const input = parameter.choices.length
      ? make("select", { name }, ...(parameter.required ? [] : [make("option", { value: "" }, "–")]), ...parameter.choices.map((value) => make("option", { value }, value)))
      : make("input", { name, type: "text", autocomplete: "off", spellcheck: "false", required: parameter.required });
    if (parameter.example.startsWith("YOUR_")) {
      input.dataset.own = parameter.example;
      input.value = readerValue(parameter.example);
    } else if (parameter.required) {
      input.value = parameter.example;
    } else {
      input.placeholder = parameter.example;
    }
    return labelled(id, [parameter.name, parameter.required ? "" : " (optional)"].join(""), input);
  }

  function build(details) {
    const operation = JSON.parse(details.dataset.operation);
    const trial = make("form", { "aria-label": `Try ${operation.method} ${operation.path}` });
    const fields = operation.parameters.map((parameter) => parameterField(operation, parameter));
    if (fields.length) trial.append(make("div", { class: "parameters" }, ...fields));
    const types = Object.keys(operation.bodies);
    if (types.length) {
      const text = make("textarea", { name: "body", spellcheck: "false", autocomplete: "off" });
      const showExample = (type) => {
        text.value = operation.bodies[type];
        text.rows = Math.min(Math.max(text.value.split("\n").length, 2), 16);
      };
      if (types.length > 1) {
        const choice = make("select", { name: "type" }, ...types.map((type) => make("option", {}, type)));
        choice.addEventListener("change", () => showExample(choice.value));
        trial.append(labelled(`${operation.name}-type`, "Content type", choice));
      }
      showExample(types[0]);
      trial.append(labelled(`${operation.name}-body`, "Body", text));
    }
    const responseBox = make("div", { class: "answer" });
    trial.append(make("p", { class: "actions" }, make("button", {}, "Send")));
    trial.append(make("p", { class: "status", role: "status" }), responseBox);
    trial.addEventListener("submit", (event) => {
      event.preventDefault();
      send(operation, trial);
    });
    details.append(trial);
  }

  function readRequest(operation, trial) {
    const query = new URLSearchParams();
    const headers = { Accept: "application/json" };
    let path = operation.path;
    for (const parameter of operation.parameters) {
      const value = trial.elements[`${parameter.in}.${parameter.name}`].value;
      if (parameter.in === "path") path = path.replace(`{${parameter.name}}`, encodeURIComponent(value));
      else if (value && parameter.in === "query") query.append(parameter.name, value);
      else if (value) headers[parameter.name] = value;
    }
    const body = trial.elements.body?.value;
    if (body) headers["Content-Type"] = trial.elements.type?.value ?? Object.keys(operation.bodies)[0];
    return { address: path + (query.size ? `?${query}` : ""), headers, body: body || undefined };
  }

  /** Return the key that the operation accepts. Engine keys are derived from the reader's key. */
  async function tokenFor(operation) {
    const key = readKey();
    if (!operation.key || !key || operation.key === "YOUR_KEY") return operation.key ? key : "";
    const response = await fetch("/v1/client-info", { headers: { Authorization: `Bearer ${key}` }, credentials: "omit" });
    const info = await response.json();
    if (!response.ok) throw new Error(info.message);
    return info.engine_public_key;
  }

  async function send(operation, trial) {
    const status = trial.querySelector(".status");
    const responseBox = trial.querySelector(".answer");
    const { address, headers, body } = readRequest(operation, trial);
    if (operation.asks && !confirm(`${operation.method} ${address}\n\nThis cannot be undone. Send it?`)) return;
    responseBox.replaceChildren();
    if (operation.key && !readKey()) {
      status.textContent = "Enter your key at the top of this page first.";
      return;
    }
    const button = trial.querySelector("button");
    button.disabled = true;
    status.textContent = "Sending…";
    try {
      const token = await tokenFor(operation);
      if (token) headers.Authorization = `Bearer ${token}`;
      const startedAt = performance.now();
      // Without the session, to show the response that a program with this key receives.
      const response = await fetch(address, { method: operation.method, headers, body, credentials: "omit", cache: "no-store" });
      const text = await response.text();
      const duration = Math.round(performance.now() - startedAt);
      status.textContent = `${response.status} ${response.statusText} in ${duration} ms`;
      showResponse(responseBox, response, text);
    } catch (error) {
      status.textContent = `No response: ${error.message}`;
    } finally {
      button.disabled = false;
    }
  }

  function pretty(text) {
    try {
      return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      return text; // Not all bodies are JSON.
    }
  }

  function showResponse(responseBox, response, text) {
    const rows = SHOWN_HEADERS.filter((name) => response.headers.has(name)).map((name) => make("div", {}, make("dt", {}, name), make("dd", {}, response.headers.get(name))));
    responseBox.append(make("dl", { class: "headers" }, ...rows));
    const formatted = pretty(text);
    const visible = formatted.length > MAX_CHARACTERS ? `${formatted.slice(0, MAX_CHARACTERS)}\n… (${formatted.length - MAX_CHARACTERS} more characters)` : formatted;
    if (visible) responseBox.append(make("div", { class: "code" }, make("pre", { tabindex: "0", "aria-label": "Response body" }, make("code", {}, visible))));
  }
})();
