"""What the audit log notes of searches, see ``watched``."""

from __future__ import annotations

from collections.abc import Mapping

from portal.config.auditing.watch import HOUR_S, MINUTE_S, Watch, told

SEARCHES: Mapping[str, Mapping[str, Watch]] = {
    "api:canvas-look-through": {"POST": Watch("search.browsed", "canvas", "canvas_id")},
    "api:map-detail": {"GET": Watch("search.browsed", "map", "pk", every_s=MINUTE_S)},
    "api:map-list": {
        "GET": Watch("search.browsed", every_s=HOUR_S),
        "POST": Watch("search.browsed"),
    },
    "api:map-near-duplicates": {"GET": Watch("search.browsed", "map", "pk", every_s=MINUTE_S)},
    "api:map-points": {"GET": Watch("search.browsed", "map", "pk", every_s=MINUTE_S)},
    "api:map-unlike": {"GET": Watch("search.browsed", "map", "pk", every_s=MINUTE_S)},
    "api:learning-detail": {
        "GET": Watch("learning.viewed", "learning", "pk", every_s=MINUTE_S),
    },
    "api:learning-list": {
        "GET": Watch("learning.viewed", every_s=HOUR_S),
        "POST": told("learning.asked"),
    },
    "api:learning-promote": {"POST": told("learning.promoted", "learning", "pk")},
    "api:learning-roll-back": {"POST": told("learning.rolled_back", "learning", "pk")},
    "api:query-detail": {
        "GET": Watch("search.made", "query", "pk", every_s=MINUTE_S),
        "DELETE": Watch("search.removed", "lab"),
    },
    "api:query-list": {
        "GET": Watch("search.listed", every_s=HOUR_S),
        "POST": Watch("search.asked", "query"),
    },
    "api:query-similar": {"GET": Watch("search.made", "query", "pk")},
    "api:report-again": {"GET": Watch("report.asked_again", "report", "pk", every_s=MINUTE_S)},
    "api:report-detail": {
        "GET": Watch("report.viewed", "report", "pk", every_s=MINUTE_S),
        "DELETE": told("report.deleted", "report", "pk"),
    },
    "api:report-pdf": {"GET": Watch("report.downloaded", "report", "pk")},
    "api:report-list": {
        "GET": Watch("report.listed", every_s=HOUR_S),
        "POST": told("report.created"),
    },
    "api:roi-judgement": {"DELETE": Watch("search.judged", "roi", "roi_id")},
    "api:roi-judgements": {"POST": Watch("search.judged", "roi", "roi_id")},
    "api:roi-label-confirmation": {
        "PUT": Watch("search.label_confirmed", "roi", "roi_id"),
        "DELETE": Watch("search.label_confirmed", "roi", "roi_id"),
    },
    "api:roi-places": {"GET": Watch("search.made", "roi", "roi_id", every_s=MINUTE_S)},
    "api:roi-similar": {"GET": Watch("search.made", "roi", "roi_id")},
    "api:unannotated": {"GET": Watch("search.browsed", every_s=HOUR_S)},
    "api:search": {"POST": Watch("search.made", "roi")},
    "retrieval:browse": {"GET": Watch("search.browsed", every_s=HOUR_S)},
    "retrieval:browse_draw": {"POST": Watch("search.browsed")},
    "retrieval:browse_duplicates": {"GET": Watch("search.browsed", every_s=HOUR_S)},
    "retrieval:browse_label": {"POST": Watch("search.label_confirmed", "roi", "roi_id")},
    "retrieval:browse_unannotated": {"GET": Watch("search.browsed", every_s=HOUR_S)},
    "retrieval:browse_unlike": {"GET": Watch("search.browsed", every_s=HOUR_S)},
    "retrieval:look_through": {"POST": Watch("search.browsed", "canvas", "canvas_id")},
    "retrieval:judge": {"POST": Watch("search.judged", "roi", "roi_id")},
    "retrieval:learning": {
        "GET": Watch("learning.viewed", "learning", "learning_id", every_s=MINUTE_S)
    },
    "retrieval:learning_promote": {"POST": told("learning.promoted", "learning", "learning_id")},
    "retrieval:learning_roll_back": {
        "POST": told("learning.rolled_back", "learning", "learning_id")
    },
    "retrieval:learnings": {
        "GET": Watch("learning.viewed", every_s=HOUR_S),
        "POST": told("learning.asked"),
    },
    "retrieval:queries": {"GET": Watch("search.listed", every_s=HOUR_S)},
    "retrieval:query": {"GET": Watch("search.made", "query", "query_id", every_s=MINUTE_S)},
    "retrieval:query_ask": {"POST": Watch("search.asked", "query")},
    "retrieval:query_mark": {"POST": Watch("search.judged", "query", "query_id")},
    "retrieval:query_new_picture": {"POST": Watch("search.asked", "query")},
    "retrieval:query_remove": {"POST": Watch("search.removed", "lab")},
    "retrieval:similar": {"GET": Watch("search.made", "roi", "roi_id", every_s=MINUTE_S)},
    "api:query-why": {"GET": Watch("search.explained", "query", "query_id", every_s=MINUTE_S)},
    "api:roi-why": {"GET": Watch("search.explained", "roi", "roi_id", every_s=MINUTE_S)},
    "retrieval:query_why": {
        "GET": Watch("search.explained", "query", "query_id", every_s=MINUTE_S),
        "POST": Watch("search.explained", "query", "query_id"),
    },
    "retrieval:report": {"GET": Watch("report.viewed", "report", "report_id", every_s=MINUTE_S)},
    "retrieval:report_again": {
        "GET": Watch("report.asked_again", "report", "report_id", every_s=MINUTE_S)
    },
    "retrieval:report_delete": {"POST": told("report.deleted", "report", "report_id")},
    "retrieval:report_file": {"GET": Watch("report.downloaded", "report", "report_id")},
    "retrieval:report_query": {"POST": told("report.created", "query", "query_id")},
    "retrieval:report_renew": {"POST": told("report.created", "report", "report_id")},
    "retrieval:report_roi": {"POST": told("report.created", "roi", "roi_id")},
    "retrieval:reports": {"GET": Watch("report.listed", every_s=HOUR_S)},
    "retrieval:why": {
        "GET": Watch("search.explained", "roi", "roi_id", every_s=MINUTE_S),
        "POST": Watch("search.explained", "roi", "roi_id"),
    },
}
