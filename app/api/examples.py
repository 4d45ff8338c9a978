"""Examples of the main operations, for the API document. They hold no secret that could work."""

from __future__ import annotations

from typing import Any

SEARCH: dict[str, Any] = {
    "q": "opening hours",
    "filters": "section = visit AND date > 2024-01-01",
    "sort": "date:desc",
    "facets": ["section"],
    "limit": 10,
    "highlight": True,
}

SEARCH_ANSWER: dict[str, Any] = {
    "results": {
        "hits": [
            {
                "id": "hours",
                "title": "Opening hours",
                "url": "/visit/hours",
                "excerpt": "",
                "content": "We open at nine.",
                "date": "2024-05-01",
                "section": "visit",
            }
        ],
        "estimatedTotalHits": 1,
        "processingTimeMs": 2,
        "query": "opening hours",
        "query_id": "AAAAAAAAAAwABhdhjLHoAGHUIXO6bW9wZW5pbmcgaG91cnOzQNJc_LutVWvFq6Jee-Ga",
        "matched": "all",
        "corrected_query": None,
        "limit": 10,
        "offset": 0,
        "facetDistribution": {"section": {"visit": 1}},
        "facetStats": {},
    },
    "remaining_quota": {"daily_limit": 100, "used_today": 7, "unlimited": False},
}

SUGGEST_ANSWER: dict[str, Any] = {
    "suggestions": [
        {"text": "opening hours", "kind": "query"},
        {"text": "Opening of the east wing", "kind": "title", "url": "/news/east-wing"},
    ]
}

BULK: dict[str, Any] = {
    "documents": [
        {
            "id": "hours",
            "title": "Opening hours",
            "content": "We open at nine.",
            "url": "/visit/hours",
            "date": "2024-05-01",
            "section": "visit",
        }
    ]
}

BULK_ANSWER: dict[str, Any] = {"success": True, "indexed": 1, "created": 1, "updated": 0}

DESTROY: dict[str, Any] = {"id": "hours"}

DESTROY_ANSWER: dict[str, Any] = {"success": True, "deleted": 1}

FILES: dict[str, str] = {
    "text/csv": "id,title,content,url\nhours,Opening hours,We open at nine.,/visit/hours\n",
    "application/x-ndjson": '{"id":"hours","title":"Opening hours","content":"We open at nine.","url":"/hours"}\n',
}

IMPORT_ANSWER: dict[str, Any] = {
    "success": True,
    "indexed": 212,
    "created": 210,
    "updated": 2,
    "skipped": 1,
    "problems": [{"line": 14, "field": "url", "code": "required", "message": "url is required"}],
}

REPORT: dict[str, Any] = {"operation": "search", "count": 1, "index": "site_1"}

SEARCH_LOG: dict[str, Any] = {
    "query": "opening hours",
    "results_count": 3,
    "session_id": "5f0c9d",
    "timestamp": "2024-05-14T09:30:00Z",
}

CLICK: dict[str, Any] = {"query": "opening hours", "id": "1", "position": 2, "session_id": "5f0c9d"}

ANALYTICS_ANSWER: dict[str, Any] = {
    "total_searches": 4,
    "unique_queries": 3,
    "avg_response_time_ms": 4,
    "clicks": 1,
    "click_through_rate": 0.25,
    "average_click_position": 2.0,
    "zero_result_rate": 0.25,
    "top_queries": [
        {"query": "opening hours", "count": 2},
        {"query": "harbour tram", "count": 1},
        {"query": "parking", "count": 1},
    ],
    "zero_result_queries": [{"query": "parking", "count": 1}],
    "partial_queries": [{"query": "harbour tram", "count": 1}],
    "no_click_queries": [{"query": "harbour tram", "count": 1}],
    "series": [{"date": "2024-05-14", "searches": 4, "zero_results": 1}],
    "previous": {
        "total_searches": 2,
        "avg_response_time_ms": 5,
        "clicks": 1,
        "click_through_rate": 0.5,
        "average_click_position": 1.0,
        "zero_result_rate": 0.0,
    },
}

ANALYTICS_CSV = """list,query,count,clicks,click_through_rate,average_click_position
top_queries,opening hours,2,1,0.5,2.0
top_queries,harbour tram,1,0,0.0,
"""

QUERY_ANALYTICS_ANSWER: dict[str, Any] = {
    "query": "opening hours",
    "searches": 2,
    "clicks": 1,
    "click_through_rate": 0.5,
    "average_click_position": 2.0,
    "series": [{"date": "2024-05-14", "searches": 2, "zero_results": 0, "clicks": 1}],
    "clicked_documents": [{"id": "1", "title": "Opening hours", "clicks": 1, "average_position": 2.0}],
    "finds_now": 3,
}

INBOX_ANSWER: dict[str, Any] = {
    "items": [{"query": "parking", "kind": "no_results", "searches": 9, "visitors": 7, "finds_now": 0}],
    "total": 1,
    "limit": 20,
    "offset": 0,
}

INBOX_CHANGE: dict[str, Any] = {"site_id": 12, "query": "parking", "ignored": True}

SITE: dict[str, Any] = {"name": "Museum", "url": "https://museum.example/"}

KEY: dict[str, Any] = {
    "name": "Search box",
    "type": "public",
    "expires_at": "2101-01-01T00:00:00Z",
    "allowed_origins": ["https://museum.example", "https://*.museum.example"],
}

SOURCE: dict[str, Any] = {
    "kind": "website",
    "url": "https://museum.example/",
    "schedule": "daily",
    "exclude": ["/private/*"],
    "selectors": {"content": "main", "remove": ".advert"},
}

RUN: dict[str, Any] = {
    "id": "run_3f6c2e9d1b7a4c5e8f90",
    "status": "finished",
    "started_at": "2024-05-14T09:30:00.000Z",
    "finished_at": "2024-05-14T09:30:41.250Z",
    "found": 226,
    "indexed": 12,
    "unchanged": 200,
    "removed": 3,
    "failed": 0,
    "skipped": 14,
    "error": None,
}

RUN_REQUEST: dict[str, Any] = {"urls": ["https://museum.example/hours"]}

RUN_ANSWER: dict[str, Any] = {
    "run": RUN,
    "pages": [{"url": "https://museum.example/shop", "reason": "robots"}],
    "total": 14,
    "limit": 1,
    "offset": 0,
}

SOURCE_ANSWER: dict[str, Any] = {
    "success": True,
    "source": {
        "id": "src_5b1e0c7f2a9d4e36",
        "site_id": 1,
        "kind": "website",
        "url": "https://museum.example/",
        "schedule": "daily",
        "include": [],
        "exclude": ["/private/*"],
        "selectors": {"content": "main", "remove": ".advert"},
        "max_pages": None,
        "max_depth": None,
        "status": "queued",
        "last_run": {
            **dict.fromkeys(("found", "indexed", "unchanged", "removed", "failed", "skipped"), 0),
            "id": "run_3f6c2e9d1b7a4c5e8f90",
            "status": "queued",
            "started_at": None,
            "finished_at": None,
            "error": None,
        },
        "created_at": "2024-05-14T09:30:00.000Z",
        "updated_at": "2024-05-14T09:30:00.000Z",
    },
}

PREVIEW: dict[str, Any] = {"url": "https://museum.example/hours", "selectors": {"content": "main"}}

PREVIEW_ANSWER: dict[str, Any] = {
    "document": {
        "id": "https://museum.example/hours",
        "title": "Opening hours",
        "content": "We open at nine.",
        "url": "https://museum.example/hours",
        "lang": "en",
    }
}

BULK_LINES = (
    '{"id": "hours", "title": "Opening hours", "content": "We open at nine.", "url": "/visit/hours"}\n'
    '{"id": "way", "title": "Getting here", "content": "Take the tram.", "url": "/visit/way", "section": "visit"}\n'
)

BULK_CSV = (
    "id,title,content,url,date,price\n"
    "hours,Opening hours,We open at nine.,/visit/hours,2024-05-01,\n"
    'ticket,"Ticket, adult",One day in all halls.,/visit/ticket,,12.5\n'
)

LISTED_DOCUMENT: dict[str, Any] = {
    **BULK["documents"][0],
    "_source": "wordpress",
    "_updated_at": "2024-05-14T09:30:00.000Z",
}

DOCUMENT_LIST: dict[str, Any] = {"documents": [LISTED_DOCUMENT], "total": 1, "next_cursor": None}

DOCUMENT_LINES = (
    '{"id":"hours","title":"Opening hours","content":"We open at nine.","url":"/visit/hours",'
    '"_source":"wordpress","_updated_at":"2024-05-14T09:30:00.000Z"}\n'
)

CHANGES: dict[str, Any] = {"documents": [{"id": "hours", "content": "We open at ten.", "section": None}]}

CHANGES_ANSWER: dict[str, Any] = {"success": True, "updated": 1}

DELETION: dict[str, Any] = {"filters": "section = visit"}

DELETION_ANSWER: dict[str, Any] = {"success": True, "deleted": 12}

SYNC: dict[str, Any] = {"source": "wordpress"}

SYNC_SHOWN: dict[str, Any] = {
    "sync": {
        "id": "sync_K5LSWPD3A7RX2QYM",
        "source": "wordpress",
        "status": "running",
        "seen": 0,
        "removed": None,
        "started_at": "2024-05-14T09:30:00.000Z",
        "ended_at": None,
    }
}

SYNC_ANSWER: dict[str, Any] = {"success": True, **SYNC_SHOWN}

SYNC_FINISH: dict[str, Any] = {"max_removed_percent": 20}

SYNC_FINISH_ANSWER: dict[str, Any] = {"success": True, "removed": 3}

SETTINGS_PREVIEW: dict[str, Any] = {
    "settings": {"synonyms": [["hours", "times"]], "pinned": [{"query": "tickets", "ids": ["ticket"]}]},
    "queries": ["opening times"],
}

SETTINGS_PREVIEW_ANSWER: dict[str, Any] = {
    "queries": [
        {
            "query": "opening times",
            "before": [{"id": "way", "title": "Getting here"}],
            "after": [{"id": "hours", "title": "Opening hours"}, {"id": "way", "title": "Getting here"}],
            "changed": True,
        }
    ]
}
