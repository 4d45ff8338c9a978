"""One request per operation, in the order in which a museum sets up and uses its site. `make examples` records the
responses.

The keys and tokens in requests and responses are not valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class RequestExample:
    """A request to an operation.

    Attributes:
        parameters: Maps names of query parameters and headers to values.
        body: The JSON body, if the operation reads one.
        other_bodies: Maps other media types to bodies.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    other_bodies: Mapping[str, str] = field(default_factory=dict)


PASSWORD = "186 steps to the lamp"

HOURS: dict[str, Any] = {
    "id": "hours",
    "title": "Opening hours",
    "content": "The museum is open from nine to five. On Thursdays it stays open until nine in the evening.",
    "url": "/visit/opening-hours",
    "date": "2024-05-01",
    "section": "visit",
}
TICKETS: dict[str, Any] = {
    "id": "tickets",
    "title": "Tickets and prices",
    "content": "Adults pay 12.50, children nothing. Tickets are sold until one hour before closing.",
    "url": "/visit/tickets",
    "date": "2024-05-02",
    "section": "visit",
    "price": 12.5,
}
LIGHTHOUSE: dict[str, Any] = {
    "id": "lighthouse",
    "title": "The lighthouse is open again",
    "content": "After two years of repairs, visitors may climb its 186 steps during the opening hours of the museum.",
    "url": "/news/lighthouse",
    "excerpt": "The harbour's oldest tower welcomes visitors.",
    "author": "Ada Marin",
    "date": "2024-04-20",
    "section": "news",
}

SHOP: dict[str, Any] = {
    "id": "shop",
    "title": "Museum shop",
    "content": "Books, model ships, and postcards.",
    "url": "/visit/shop",
    "section": "visit",
}

LINES = (
    '{"id": "way", "title": "Getting here", "content": "Take tram 4 to the harbour.", "url": "/visit/way"}\n'
    '{"id": "cafe", "title": "Café", "content": "Soup, cake, and a view of the ships.", "url": "/visit/cafe"}\n'
)
TABLE = (
    "id,title,content,url,section,price\n"
    "way,Getting here,Take tram 4 to the harbour.,/visit/way,visit,\n"
    'tour,"Guided tour, one hour",Every Sunday at eleven.,/visit/tour,visit,4.5\n'
)
WORDPRESS_EXPORT = """<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:wp="http://wordpress.org/export/1.2/">
<channel>
  <title>Harbour Museum</title>
  <link>https://museum.example</link>
  <wp:wxr_version>1.2</wp:wxr_version>
  <item>
    <title>Getting here</title>
    <link>https://museum.example/visit/way</link>
    <content:encoded><![CDATA[<p>Take tram 4 to the harbour.</p>]]></content:encoded>
    <wp:post_id>7</wp:post_id>
    <wp:status>publish</wp:status>
    <wp:post_type>page</wp:post_type>
  </item>
</channel>
</rss>
"""

SETTINGS: dict[str, Any] = {
    "language": "en",
    "synonyms": [["tickets", "admission"]],
    "pinned": [{"query": "museum", "ids": ["tickets"]}],
    "weights": {"title": 2},
    "distinct": "page",
    "preferred": {"field": "version", "value": "latest"},
    "rules": [
        {
            "id": "summer",
            "when": {"query": "opening hours", "match": "words", "from": "2026-06-01", "to": "2026-09-01"},
            "do": {"pin": ["tickets"], "notice": {"text": "We are closed on 15 August.", "url": "/news"}},
        }
    ],
    "boosts": [{"path": "/archive/*", "rank": -2}],
    "no_results_links": [{"text": "Plan your visit", "url": "/visit"}],
    "ask": True,
    "ask_instructions": "Be brief and friendly. The museum is called Harbour Museum.",
}

REQUESTS: Mapping[str, RequestExample] = {
    # The service runs, and a user registers.
    "showHealth": RequestExample(),
    "showReadiness": RequestExample(),
    "register": RequestExample(body={"name": "Ada Marin", "email": "ada@museum.example", "password": PASSWORD}),
    "login": RequestExample(body={"email": "ada@museum.example", "password": PASSWORD}),
    "logout": RequestExample(body={}),
    # A site and its keys.
    "showSiteCreateForm": RequestExample(),
    "createSite": RequestExample(body={"name": "Museum", "url": "https://museum.example/"}),
    "listSites": RequestExample(parameters={"limit": 20}),
    "showSite": RequestExample(),
    "showSiteEditForm": RequestExample(),
    "updateSite": RequestExample(
        body={
            "name": "Harbour Museum",
            "url": "https://museum.example/",
            "domains": ["https://blog.museum-friends.example/"],
        }
    ),
    "patchSite": RequestExample(
        body={"agents": True, "description": "Opening hours, tickets, and exhibitions of the museum."}
    ),
    "createKey": RequestExample(
        body={"name": "Search box", "type": "public", "allowed_origins": ["https://*.museum.example"]}
    ),
    "listKeys": RequestExample(parameters={"limit": 20}),
    "showKey": RequestExample(),
    "showKeyEditForm": RequestExample(),
    "updateKey": RequestExample(body={"name": "Search box of the shop"}),
    "patchKey": RequestExample(body={"expires_at": "2099-12-31T23:59:59Z"}),
    "rotateKey": RequestExample(body={"overlap_seconds": 3600}),
    "dismissKeyExposure": RequestExample(),
    "toggleKey": RequestExample(body={"active": False}),
    # Documents, and searches for them.
    "indexDocuments": RequestExample(
        body={"documents": [HOURS, TICKETS, LIGHTHOUSE]},
        other_bodies={"application/x-ndjson": LINES, "text/csv": TABLE},
    ),
    "search": RequestExample(
        parameters={
            "q": "opening hours",
            "limit": 10,
            "filters": "section = visit",
            "sort": "date:desc",
            "facets": "section",
            "highlight": True,
            "session_id": "5f0c9d",
        }
    ),
    "searchByBody": RequestExample(
        body={
            "q": "opening hours",
            "filters": "section = visit AND date > 2024-01-01",
            "sort": ["date:desc"],
            "facets": ["section"],
            "fields": ["title", "url", "date"],
            "limit": 10,
        }
    ),
    # A collection of sites, and its keys.
    "createCollection": RequestExample(
        body={"name": "Everything", "sites": [{"site_id": 1, "label": "Museum", "weight": 1.5}]}
    ),
    "listCollections": RequestExample(parameters={"limit": 20}),
    "showCollection": RequestExample(),
    "updateCollection": RequestExample(
        body={"name": "Museum and shop", "sites": [{"site_id": 1, "label": "Museum", "filters": "section = visit"}]}
    ),
    "patchCollection": RequestExample(body={"name": "Museum"}),
    "createCollectionKey": RequestExample(body={"name": "Search box", "type": "public"}),
    "listCollectionKeys": RequestExample(parameters={"limit": 20}),
    "showCollectionKey": RequestExample(),
    "updateCollectionKey": RequestExample(body={"name": "Search box of the shop"}),
    "patchCollectionKey": RequestExample(body={"expires_at": "2099-12-31T23:59:59Z"}),
    "rotateCollectionKey": RequestExample(body={"overlap_seconds": 3600}),
    "deleteCollectionKey": RequestExample(),
    "deleteCollection": RequestExample(),
    "showClientInfo": RequestExample(),
    "customSearch": RequestExample(parameters={"key": "YOUR_KEY", "q": "opening hours", "num": 2}),
    "algoliaQueries": RequestExample(
        parameters={"x-algolia-api-key": "YOUR_KEY"},
        body={"requests": [{"indexName": "museum", "query": "opening hours", "filters": "section:visit"}]},
    ),
    "algoliaQuery": RequestExample(
        parameters={"x-algolia-api-key": "YOUR_KEY"}, body={"query": "opening hours", "hitsPerPage": 1}
    ),
    "engineHealth": RequestExample(),
    "engineSearch": RequestExample(
        parameters={"Meili-Include-Metadata": True},
        body={
            "q": "opening hours",
            "filter": "section = visit",
            "facets": ["section"],
            "attributesToHighlight": ["title", "content"],
            "limit": 10,
        },
    ),
    "engineSearchByQuery": RequestExample(parameters={"q": "opening hours", "filter": "section = visit", "limit": 10}),
    "engineMultiSearch": RequestExample(
        body={
            "queries": [
                {"indexUid": "site_1", "q": "opening hours", "filter": "section = visit", "limit": 10},
                {"indexUid": "site_1", "q": "opening hours", "facets": ["section"], "limit": 0},
            ]
        }
    ),
    "engineFacetSearch": RequestExample(body={"facetName": "section", "facetQuery": "vis"}),
    "logSearch": RequestExample(body={"query": "audio guide", "results_count": 0, "session_id": "5f0c9d"}),
    "reportUsage": RequestExample(
        parameters={"Idempotency-Key": "2024-05-14-0001"}, body={"operation": "search", "count": 1, "index": "site_1"}
    ),
    "reportClick": RequestExample(
        body={"query": "opening hours", "id": "hours", "anchor": "holidays", "position": 1, "session_id": "5f0c9d"},
    ),
    # Suggestions and analytics, with data from the earlier searches.
    "suggest": RequestExample(parameters={"q": "open", "limit": 8}),
    "listRelatedPages": RequestExample(parameters={"url": "https://museum.example/visit/opening-hours", "limit": 4}),
    "listPopularPages": RequestExample(parameters={"period": 30, "limit": 4}),
    "engineSuggest": RequestExample(body={"q": "open", "limit": 8}),
    "engineSuggestByQuery": RequestExample(parameters={"q": "open", "limit": 8}),
    "showAnalytics": RequestExample(parameters={"period": "7d", "site_id": 1, "limit": 10}),
    "showQueryAnalytics": RequestExample(parameters={"site_id": 1, "q": "opening hours", "period": "7d"}),
    "showInbox": RequestExample(parameters={"site_id": 1, "limit": 20}),
    "updateInbox": RequestExample(body={"site_id": 1, "query": "audio guide", "ignored": True}),
    "previewSearchSettings": RequestExample(body={"settings": SETTINGS, "queries": ["admission", "museum"]}),
    "updateSearchSettings": RequestExample(body=SETTINGS),
    "showSearchSettings": RequestExample(),
    "ask": RequestExample(body={"q": "When is the museum open on Thursdays?", "session_id": "5f0c9d"}),
    "sendAskFeedback": RequestExample(body={"helpful": True}),
    "showAskAnalytics": RequestExample(parameters={"site_id": 1, "period": "7d"}),
    "listLearnedClicks": RequestExample(),
    "forgetClicks": RequestExample(),
    # Documents are listed and changed; imports and syncs add more.
    "listDocuments": RequestExample(parameters={"limit": 20, "filters": "section = news"}),
    "changeDocuments": RequestExample(
        body={"documents": [{"id": "hours", "content": "The museum is open from ten to five.", "section": None}]}
    ),
    "importFile": RequestExample(
        parameters={"format": "csv"},
        body=[SHOP],
        other_bodies={
            "text/csv": TABLE,
            "application/x-ndjson": LINES,
            "application/xml": WORDPRESS_EXPORT,
            "text/xml": WORDPRESS_EXPORT,
            "application/octet-stream": TABLE,
            "text/plain": TABLE,
        },
    ),
    "beginSync": RequestExample(body={"source": "wordpress"}),
    "showSync": RequestExample(),
    "finishSync": RequestExample(body={"max_removed_percent": 20}),
    "abandonSync": RequestExample(),
    # Sources crawl the site's pages.
    "previewPage": RequestExample(
        body={"url": "https://museum.example/visit/opening-hours", "selectors": {"content": "main"}}
    ),
    "lookUpPage": RequestExample(parameters={"url": "https://museum.example/visit/opening-hours"}),
    "createSource": RequestExample(
        body={
            "kind": "website",
            "url": "https://museum.example/",
            "schedule": "daily",
            "exclude": ["/private/*"],
            "selectors": {"content": "main", "remove": ".advert"},
            "fields": [
                {"path": "/{lang}/*", "set": {"lang": "{lang}"}},
                {"name": "topics", "selector": ".topic", "all": True},
            ],
        }
    ),
    "importConfig": RequestExample(
        parameters={"format": "docsearch"},
        body={
            "index_name": "museum",
            "start_urls": [{"url": "https://museum.example/docs/", "tags": ["docs"]}],
            "stop_urls": ["/docs/archive/"],
            "selectors": {"lvl0": "main h1", "lvl1": "main h2", "text": "main p, main li"},
        },
    ),
    "listSources": RequestExample(parameters={"limit": 20}),
    "showSource": RequestExample(),
    "updateSource": RequestExample(body={"exclude": ["/private/*", "*?print=*"], "max_pages": 500}),
    "patchSource": RequestExample(body={"schedule": "weekly"}),
    "showRun": RequestExample(parameters={"limit": 20}),
    "listDeadLinks": RequestExample(parameters={"limit": 20}),
    "runSource": RequestExample(body={"urls": ["https://museum.example/visit/opening-hours"]}),
    "cancelRun": RequestExample(body={}),
    "listRuns": RequestExample(parameters={"limit": 20}),
    "renewHook": RequestExample(body={}),
    "runSourceByHook": RequestExample(body={"urls": ["https://museum.example/visit/opening-hours"]}),
    # The dashboard and the profile.
    "showDashboard": RequestExample(),
    "showMonth": RequestExample(parameters={"month": "2024-05"}),
    "showProfileEditForm": RequestExample(),
    "updateProfile": RequestExample(body={"name": "Ada Marin-Holt"}),
    # Two-factor authentication, and sessions. The code is valid at the fixed time at which `make examples` runs.
    "beginCodes": RequestExample(body={"current_password": PASSWORD}),
    "confirmCodes": RequestExample(body={"code": "874879"}),
    "showCodes": RequestExample(),
    "removeCodes": RequestExample(body={"current_password": PASSWORD}),
    "listSessions": RequestExample(parameters={"limit": 20}),
    "endSession": RequestExample(),
    "endOtherSessions": RequestExample(),
    # A colleague joins, and leaves.
    "createInvitation": RequestExample(body={"email": "leo@museum.example", "role": "viewer"}),
    "renewInvitation": RequestExample(body={}),
    "listInvitations": RequestExample(parameters={"limit": 20}),
    "showInvitation": RequestExample(),
    "acceptInvitation": RequestExample(body={"name": "Leo Holt", "password": "four masts and a funnel"}),
    "listMembers": RequestExample(parameters={"limit": 20}),
    "showMember": RequestExample(),
    "updateMember": RequestExample(body={"role": "editor"}),
    "patchMember": RequestExample(body={"role": "viewer"}),
    "listAuditEntries": RequestExample(parameters={"kind": "member", "limit": 3}),
    "removeMember": RequestExample(),
    "revokeInvitation": RequestExample(),
    # Webhooks notify the museum's own programs of events.
    "createWebhook": RequestExample(
        body={"url": "https://museum.example/hooks/search", "events": ["run.failed", "quota.warning"]}
    ),
    "listWebhooks": RequestExample(parameters={"limit": 20}),
    "showWebhook": RequestExample(),
    "updateWebhook": RequestExample(body={"events": ["run.finished", "run.failed", "quota.warning", "key.exposed"]}),
    "patchWebhook": RequestExample(body={"active": True}),
    "listDeliveries": RequestExample(parameters={"limit": 20}),
    "redeliver": RequestExample(body={}),
    "deleteWebhook": RequestExample(),
    # The operator of the service manages accounts, and reads what invoices need.
    "createAccount": RequestExample(
        body={"name": "Town Library", "email": "office@library.example", "password": "a quiet room", "plan": "starter"}
    ),
    "listAccounts": RequestExample(parameters={"q": "example", "sort": "searches", "limit": 20}),
    "showAccount": RequestExample(),
    "updateAccount": RequestExample(body={"plan": "pro", "limits": {"documents": 200_000, "sites": None}}),
    "suspendAccount": RequestExample(body={"reason": "The invoice of April is unpaid."}),
    "resumeAccount": RequestExample(body={}),
    "showUsage": RequestExample(parameters={"month": "2024-05"}),
    "listAllSites": RequestExample(parameters={"account_id": 1, "limit": 20}),
    "listEngines": RequestExample(),
    # Deletions come last, because earlier requests need the objects.
    "removeAccount": RequestExample(),
    "deleteSource": RequestExample(parameters={"keep_documents": True}),
    "deleteDocument": RequestExample(body={"id": "lighthouse"}),
    "deleteDocuments": RequestExample(body={"filters": "section = visit"}),
    "deleteKey": RequestExample(),
    "eraseVisitor": RequestExample(parameters={"site_id": 1, "session_id": "5f0c9d"}),
    "deleteSite": RequestExample(parameters={"name": "Harbour Museum"}),
    "restoreSite": RequestExample(body={}),
    "deleteAccount": RequestExample(body={"password": PASSWORD, "reason": "The museum closes."}),
}
"""Maps operation IDs to requests, in the order in which `make examples` sends them."""

PATHS: Mapping[str, tuple[Any, ...]] = {
    "ask_id": ("ask", "ask_id"),
    "site_id": ("createSite", "site", "id"),
    "uid": ("createSite", "site", "index"),
    "key_id": ("createKey", "key", "id"),
    "collection_key_id": ("createCollectionKey", "key", "id"),
    "collection_id": ("createCollection", "collection", "id"),
    "sync_id": ("beginSync", "sync", "id"),
    "source_id": ("createSource", "source", "id"),
    "invitation_id": ("createInvitation", "invitation", "id"),
    "token": ("renewInvitation", "token"),
    "session_id": ("listSessions", "sessions", 0, "id"),
    "member_id": ("listMembers", "members", 1, "id"),
    "webhook_id": ("createWebhook", "webhook", "id"),
    "account_id": ("createAccount", "account", "id"),
    "delivery_id": ("listDeliveries", "deliveries", 0, "id"),
    "secret": ("renewHook", "source", "hook_url"),
    "run_id": ("createSource", "source", "last_run", "id"),
}
"""Maps path parameters to the source of their values: an operation, and the value's path in the response."""
