"""Keep a site's search up to date:  python sync.py pages.jsonl

Sends every page of a file of JSON lines, then removes the pages that are no longer in the file."""

import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.request

URL = os.environ["SITE_SEARCH_URL"].rstrip("/")
KEY = os.environ["SITE_SEARCH_KEY"]  # A private key of the site.
SOURCE = os.environ.get("SITE_SEARCH_SOURCE", "website")
BATCH_PAGES, BATCH_BYTES, TRIES = 500, 4_000_000, 8


def call(path, body, content_type="application/json"):
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": content_type}
    for attempt in range(1, TRIES + 1):
        request = urllib.request.Request(URL + path, body, headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            problem, after = error.read().decode(), error.headers.get("Retry-After", "")
            wait = int(after) if after.isdigit() else 2**attempt
            if error.code not in (429, 503):
                sys.exit(f"{path}: {error.code} {problem}")
        except (OSError, http.client.HTTPException) as error:
            problem, wait = str(error), 2**attempt
        if attempt < TRIES:
            print(f"{path}: {problem}; trying again in {wait} s", file=sys.stderr)
            time.sleep(wait)
    sys.exit(f"{path}: gave up: {problem}")


def batches(lines):
    batch, size = [], 0
    for line in lines:
        if batch and (len(batch) == BATCH_PAGES or size + len(line) > BATCH_BYTES):
            yield b"".join(batch)
            batch, size = [], 0
        if line.strip():
            batch.append(line)
            size += len(line)
    if batch:
        yield b"".join(batch)


with open(sys.argv[1], "rb") as pages:  # Or ask your CMS: one object per line.
    sync = call("/api/v1/sync", json.dumps({"source": SOURCE, "replace": True}).encode())["sync"]["id"]
    bulk = f"/api/v1/index/bulk?sync={sync}"
    sent = sum(call(bulk, batch, "application/x-ndjson")["indexed"] for batch in batches(pages))
limit = {"max_removed_percent": int(os.environ.get("MAX_REMOVED_PERCENT", "20"))}
done = call(f"/api/v1/sync/{sync}/finish", json.dumps(limit).encode())
print(f"{sent} pages sent, {done['removed']} removed")
