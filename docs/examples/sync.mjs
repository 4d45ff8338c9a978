// Keep a site's search up to date:  node sync.mjs pages.jsonl
// Sends every page of a file of JSON lines, then removes the pages that are no longer in the file.

import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

const { SITE_SEARCH_URL, SITE_SEARCH_KEY, SITE_SEARCH_SOURCE = "website", MAX_REMOVED_PERCENT = "20" } = process.env;
const URL = SITE_SEARCH_URL.replace(/\/+$/, "");
const BATCH_PAGES = 500, BATCH_BYTES = 4_000_000, TRIES = 8;

async function call(path, body, type = "application/json") {
  const headers = { Authorization: `Bearer ${SITE_SEARCH_KEY}`, "Content-Type": type }; // A private key of the site.
  let problem;
  for (let attempt = 1; attempt <= TRIES; attempt++) {
    let wait = 2 ** attempt;
    let status = 0;
    try {
      const response = await fetch(URL + path, { method: "POST", headers, body, signal: AbortSignal.timeout(120_000) });
      if (response.ok) return await response.json();
      status = response.status;
      problem = `${status} ${await response.text()}`;
      const after = response.headers.get("Retry-After");
      if (/^\d+$/.test(after)) wait = Number(after);
    } catch (error) {
      problem = String(error.cause ?? error);
    }
    if (![0, 429, 503].includes(status)) throw new Error(`${path}: ${problem}`);
    if (attempt < TRIES) {
      console.error(`${path}: ${problem}; trying again in ${wait} s`);
      await sleep(wait * 1000);
    }
  }
  throw new Error(`${path}: gave up: ${problem}`);
}

async function* batches(lines) {
  let batch = [], size = 0;
  for await (const line of lines) {
    if (!line.trim()) continue;
    if (batch.length && (batch.length === BATCH_PAGES || size + Buffer.byteLength(line) > BATCH_BYTES)) {
      yield batch.join("\n");
      [batch, size] = [[], 0];
    }
    batch.push(line);
    size += Buffer.byteLength(line);
  }
  if (batch.length) yield batch.join("\n");
}

const { sync } = await call("/api/v1/sync", JSON.stringify({ source: SITE_SEARCH_SOURCE, replace: true }));
const pages = createInterface({ input: createReadStream(process.argv[2]) }); // Or ask your CMS: one object per line.
let sent = 0;
for await (const body of batches(pages)) {
  sent += (await call(`/api/v1/index/bulk?sync=${sync.id}`, body, "application/x-ndjson")).indexed;
}
const limit = JSON.stringify({ max_removed_percent: Number(MAX_REMOVED_PERCENT) });
const done = await call(`/api/v1/sync/${sync.id}/finish`, limit);
console.log(`${sent} pages sent, ${done.removed} removed`);
