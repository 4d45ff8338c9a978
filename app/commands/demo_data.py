"""The demo: an account, a site with its three keys, and the product's own documentation to search."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from typing import Any

import orjson

from app.documentation import FOR_DEVELOPERS, anchor_of, documentation_files, plain_text
from app.models import Account
from app.runtime import Runtime
from app.services import accounts, sites
from app.services.access import keys
from app.services.access.credentials import credential_change
from schemas.validation.documents import ValidDocument, read_document

EMAIL = "demo@example.com"
KEY_NAMES = {"private": "Server", "search": "Search from a server", "public": "Search box in the browser"}
_HEADING = re.compile(r"^(#{1,3}) +(.+?)\s*$", re.MULTILINE)


def make_demo(part: Runtime, base_url: str) -> str:
    """Create what is missing and give the text to print.

    The demo's password and tokens are kept in DATA_DIR/demo.json, readable by the owner only, so that
    the same ones are printed the next time.
    """
    path = part.settings.data_path / "demo.json"
    kept = orjson.loads(path.read_bytes()) if path.exists() else None
    if kept is None or not _exists(part, kept):
        kept = _create(part, base_url)
        _write(path, kept)
    documents = list(documentation())
    if documents:
        part.writer.put(kept["account_id"], _limits(part), kept["site_id"], documents)
    return _text(kept, base_url, len(documents))


def _exists(part: Runtime, kept: dict[str, Any]) -> bool:
    with part.database.read() as session:
        account = session.get(Account, kept["account_id"])
        return account is not None and account.email == EMAIL and sites.count_sites(session, account.id) > 0


def _limits(part: Runtime) -> Any:
    return part.plans["pro"]


def _create(part: Runtime, base_url: str) -> dict[str, Any]:
    password = secrets.token_urlsafe(12)
    password_hash = accounts.hash_password(password)
    with part.database.write() as session:
        account = accounts.find_account(session, EMAIL)
        if account is None:
            account = accounts.create_account(
                session, name="Demo", email=EMAIL, password_hash=password_hash, plan="pro"
            )
        else:
            accounts.update_profile(session, account.id, {"password_hash": password_hash})
    tokens: dict[str, str] = {}
    with credential_change(part.database, part.counters, account.id) as session:
        site = sites.create_site(
            session, account.id, _limits(part), part.engines.current.identity, name="Documentation", url=base_url
        )
        for kind, name in KEY_NAMES.items():
            _, tokens[kind] = keys.create_key(
                session,
                account.id,
                _limits(part),
                part.settings.secret_key,
                site.id,
                name=name,
                type=kind,
                expires_at=None,
            )
    return {"account_id": account.id, "site_id": site.id, "password": password, "keys": tokens}


def _write(path: Path, kept: dict[str, Any]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(orjson.dumps(kept))


def documentation() -> list[ValidDocument]:
    """The product's documentation for customers and operators as documents, one for each section."""
    found = []
    for name, file in documentation_files().items():
        if name not in FOR_DEVELOPERS:
            found.extend(_sections(name, file))
    return found


def _sections(page: str, file: Path) -> list[ValidDocument]:
    text = file.read_text()
    headings = [match for match in _HEADING.finditer(text) if text[: match.start()].count("```") % 2 == 0]
    sections = []
    for number, heading in enumerate(headings):
        end = headings[number + 1].start() if number + 1 < len(headings) else len(text)
        title = heading[2].replace("`", "")
        anchor = anchor_of(title)
        content = plain_text(text[heading.end() : end])
        sections.append(
            read_document(
                {
                    "id": f"{file.stem}-{anchor}",
                    "title": title,
                    "content": content,
                    "excerpt": next((line for line in content.splitlines() if line[:1].isalpha()), "")[:200],
                    "url": f"/docs/{page}#{anchor}" if page else f"/docs#{anchor}",
                    "author": "Site Search documentation",
                    "section": file.stem,
                }
            )
        )
    return sections


def _text(kept: dict[str, Any], base_url: str, count: int) -> str:
    tokens = kept["keys"]
    return f"""
The demo is ready: {count} sections of the documentation are indexed.

  Private key  {tokens["private"]}
  Search key   {tokens["search"]}
  Public key   {tokens["public"]}

  Try a search:
    curl '{base_url}/v1/search?q=quota&highlight=true' -H 'Authorization: Bearer {tokens["search"]}'

  Dashboard    {base_url}/dashboard
  Log in with  {EMAIL} and {kept["password"]}
"""
