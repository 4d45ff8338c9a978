"""The unmodified client of the official Model Context Protocol SDK searches a site and fetches documents."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from tests.callers import page
from tests.clients.conftest import Customer

REVISIONS = {"legacy": "2025-11-25", "auto": "2026-07-28"}


@pytest.fixture(scope="module")
def customer(needs_package: Callable[[str], None], make_customer: Callable[[str], Customer]) -> Customer:
    needs_package("mcp")
    customer = make_customer("mcp@example.com")
    opened = customer.call("session", "PATCH", f"/sites/{customer.site_id}", json={"agents": True})
    opened.raise_for_status()
    sections = [{"anchor": "prices", "title": "Prices", "level": 2, "start": 12}]
    tours = page(
        "t", title="Harbour tours", url="/tours", content="Every day.\n\nPrices\n\nA ferry: 5.", sections=sections
    )
    pages = [tours, page("long", title="History", url="/history", content="A year went by.\n" * 2_000)]
    customer.call("private", "POST", "/api/v1/index/bulk", json={"documents": pages}).raise_for_status()
    return customer


@pytest.mark.parametrize("mode", REVISIONS)
def test_mcp_client_searches_and_fetches_documents(customer: Customer, mode: str) -> None:
    connect = import_module("mcp").Client
    url = f"{customer.server.base_url}/mcp/{customer.tokens['public']}"

    async def use() -> tuple[str, Any, Any, list[Any], Any]:
        async with connect(url, mode=mode) as client:
            tools = (await client.list_tools()).tools
            found = await client.call_tool("search", {"query": "ferry prices"})
            parts, offset = [], 0
            while offset is not None:
                part = await client.call_tool("fetch", {"url": "https://example.com/history", "offset": offset})
                parts.append(part.structured_content["text"])
                offset = part.structured_content["next_offset"]
            rejected = await client.call_tool("search", {"query": "ferry", "limit": 11})
            return client.protocol_version, tools, found, parts, rejected

    revision, tools, found, parts, rejected = asyncio.run(use())

    assert revision == REVISIONS[mode]
    assert [tool.name for tool in tools] == ["search", "fetch"]
    hit = found.structured_content["results"][0]
    assert (hit["id"], hit["url"], hit["snippet"]) == ("page-t", "https://example.com/tours#prices", "A ferry: 5.")
    assert len(parts) == 2
    assert "".join(parts).count("A year went by.") == 2_000
    assert (rejected.is_error, rejected.content[0].text) == (True, "limit must be between 1 and 10")


def test_mcp_client_can_send_the_key_as_a_bearer_token(customer: Customer) -> None:
    connect = import_module("mcp").Client
    transport = import_module("mcp.client.streamable_http").streamable_http_client
    headers = {"Authorization": f"Bearer {customer.tokens['search']}"}

    async def use() -> Any:
        async with import_module("httpx2").AsyncClient(headers=headers) as http:
            wire = transport(f"{customer.server.base_url}/mcp", http_client=http)
            async with connect(wire) as client:
                return await client.call_tool("fetch", {"id": "page-t"})

    assert asyncio.run(use()).structured_content["text"].startswith("# Harbour tours\n\n<https://example.com/tours>")
