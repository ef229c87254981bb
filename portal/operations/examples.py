"""Examples of each REST operation, for the schema; tests send them.

Request bodies are here; the queries of GETs and their responses were recorded with the tests' data
(``read_examples.json``). Ids in an example are derived from words; tests replace them by ids of
their own data.
"""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from drf_spectacular.hooks import postprocess_schema_enums

from ml.types import JsonObject


def shown_id(word: str) -> str:
    """Constant id in the schema for an object named by ``word``."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"urn:tessera:example:{word}"))


_LAB, _CASE, _CANVAS = shown_id("labs"), shown_id("cases"), shown_id("canvases")
_ROI, _LABEL, _VIDEO = shown_id("rois"), shown_id("labels"), shown_id("videos")
_SQUARE = {
    "type": "Polygon",
    "coordinates": [[[20, 20], [300, 20], [300, 300], [20, 300], [20, 20]]],
}
_CASE_WHOLE = {
    "accession": "S26-00171",
    "patient_key": "P-0042",
    "age_band": "unknown",
    "sex": "unknown",
    "organ": "colon",
    "procedure": "biopsy",
    "diagnosis": "tubular adenoma",
    "tags": ["teaching"],
    "clinical_question": "Is the polyp completely removed?",
    "notes": "Piecemeal resection in two parts.",
}
_LABEL_NEW = {"lab": _LAB, "name": "Adenoma", "color": "#3d7ea6"}

REQUESTS: dict[str, Any] = {
    "assignments_create": {
        "canvases": [_CANVAS],
        "people": [shown_id("people")],
        "note": "Please outline the glands",
    },
    "assignments_partial_update": {"note": "By Friday, please"},
    "canvas_outline_propose": {"x": 200, "y": 200, "window": [0, 0, 704, 576]},
    "canvases_live_update": {
        "tab": shown_id("tabs"),
        "view": [0, 0, 704, 576],
        "roi": _ROI,
    },
    "canvases_partial_update": {"mpp_x": 0.25, "mpp_y": 0.25},
    "cases_bulk_details": {"cases": [_CASE], "organ": "Caecum", "diagnosis": "8211/0"},
    "cases_bulk_export": {"cases": [_CASE]},
    "cases_bulk_shares": {"cases": [_CASE], "with_lab": "east", "until": "2099-12-31"},
    "cases_bulk_tags": {"filter": {"organ": "colon"}, "add": ["teaching"]},
    "cases_create": {"lab": _LAB, **_CASE_WHOLE},
    "cases_partial_update": {"diagnosis": "tubular adenoma"},
    "cases_shares_create": {"with_lab": "east", "until": "2099-12-31"},
    "cases_update": {"lab": _LAB, **_CASE_WHOLE},
    "erasures_create": {"lab": _LAB, "accession": "S26-00094", "typed": "S26-00094"},
    "followups_create": {"roi": shown_id("video_rois"), "target": shown_id("video_canvases")},
    "intake_rules_update": {
        "takes_names_out": True,
        "must_be_clean": True,
        "titles_from_files": False,
        "identifying_text": "hold",
        "other_text": "warn",
        "faces": "warn",
        "ignored_words": ["CHROMA"],
    },
    "invitations_create": {
        "lab": _LAB,
        "email": "new.colleague@hospital.example",
        "full_name": "New Colleague",
        "role": "annotator",
    },
    "jobs_cancel_many": {"ids": [shown_id("jobs")]},
    "label_properties_set": {
        "lab": _LAB,
        "properties": [{"key": "Grade", "kind": "choice", "choices": ["1", "2"]}],
    },
    "label_versions_create": {"lab": _LAB, "note": "As agreed in spring"},
    "labels_create": _LABEL_NEW,
    "labels_merge_create": {"into": _LABEL, "preview": True},
    "labels_order": {"lab": _LAB, "labels": [{"id": _LABEL}]},
    "labels_partial_update": {"name": "Adenoma", "color": "#3d7ea6"},
    "learnings_create": {"lab": _LAB, "kind": "histology", "method": "metric"},
    "maps_create": {"lab": _LAB, "kind": "histology"},
    "members_partial_update": {"role": "annotator"},
    "mosaics_create": {"video": _VIDEO, "config": {}},
    "quarantine_redact_create": {"boxes": [{"x": 0.02, "y": 0.02, "width": 0.3, "height": 0.06}]},
    "quarantine_release_create": {"reason": "It shows a scale, no name."},
    "quantification_settings_update": {
        "weak_od": 0.2,
        "moderate_od": 0.4,
        "strong_od": 0.6,
        "nucleus_od": 0.1,
        "min_area_um2": 10.0,
        "max_area_um2": 400.0,
    },
    "queries_create": {"source": "tissue", "canvas": _CANVAS},
    "redaction_templates_create": {
        "upload": shown_id("quarantine"),
        "boxes": [{"x": 0.02, "y": 0.02, "width": 0.3, "height": 0.06}],
    },
    "report_interpret": {"text": "Tubular adenoma is the likely match.", "version": 0},
    "reports_create": {"roi": _ROI, "k": 10},
    "review_rules_update": {"may_judge_own": False},
    "roi_imports_start_create": {"dry_run": True},
    "roi_quantify": {"staining": "dab-nuclear"},
    "roi_judge": {"other": shown_id("video_rois"), "verdict": "alike"},
    "rois_bulk_create": {
        "canvas": _CANVAS,
        "changes": [{"do": "create", "id": shown_id("new_rois"), "geometry": _SQUARE}],
    },
    "rois_create": {"canvas": _CANVAS, "geometry": _SQUARE, "name": "Gland"},
    "rois_partial_update": {"name": "Gland at the margin"},
    "rois_restore_create": {"geometry": _SQUARE},
    "rois_review": {"state": "submitted", "rois": [{"id": _ROI, "version": 1}]},
    "rois_thread_create": {"text": "Larger than the last one?"},
    "rois_track_create": {"from_index": 0, "frames": 8},
    "search": {"roi": _ROI, "k": 10, "exclude_same_patient": True},
    "slides_partial_update": {"name": "Section 3", "stain": "H&E"},
    "studies_create": {"lab": _LAB, "name": "Second reading", "blind_until": "study"},
    "studies_decide": {"canvas": _CANVAS, "findings": [_ROI], "choice": "merged"},
    "notification_preferences_update": {"mail": "at-once"},
    "notifications_read_many": {"ids": [shown_id("notifications")]},
    "service_accounts_create": {"lab": _LAB, "name": "LIS", "role": "annotator"},
    "service_accounts_tokens_create": {"areas": {"cases": "write"}, "expires_in_days": 30},
    "tokens_create": {"name": "LIS", "scope": "read", "expires_in_days": 30},
    "video_events_create": {
        "canvas": shown_id("video_canvases"),
        "name": "Caecum",
        "first_index": 2,
        "last_index": 5,
    },
    "video_events_partial_update": {"last_index": 7},
    "videos_clip_request": {"first_index": 2, "last_index": 5},
    "videos_partial_update": {"name": "Sigmoid, second look"},
    "vocabulary_remove_create": {"lab": _LAB, "terms": [shown_id("vocabulary")]},
    "webhooks_create": {"lab": _LAB, "name": "LIS", "url": "https://lis.hospital.example/tessera"},
    "webhooks_partial_update": {"name": "LIS of the ward", "is_on": True},
    "webhooks_replay_create": {"since": "2026-01-01T00:00:00Z"},
}


READS_FILE = Path(__file__).parent / "read_examples.json"


def read_examples() -> dict[str, JsonObject]:
    """``path``, ``query`` and ``status`` of each GET, and ``answer`` if that is JSON."""
    examples: dict[str, JsonObject] = json.loads(READS_FILE.read_text(encoding="utf-8"))
    return examples


def examples_add(result: JsonObject, generator: Any, request: Any, public: bool) -> Any:
    """Postprocessing hook of drf-spectacular: add the examples to their operations."""
    finish: Callable[..., JsonObject] = postprocess_schema_enums
    result = finish(result, generator)
    reads = read_examples()
    for operations in result["paths"].values():
        for operation in operations.values():
            name = operation["operationId"]
            content = operation.get("requestBody", {}).get("content", {})
            if name in REQUESTS and "application/json" in content:
                content["application/json"]["examples"] = _example_of(REQUESTS[name])
            if name in reads:
                _read_add(operation, reads[name])
    return result


def _read_add(operation: JsonObject, example: JsonObject) -> None:
    for parameter in operation.get("parameters", []):
        values = example.get(parameter["in"], {})
        if parameter["name"] in values:
            parameter["example"] = values[parameter["name"]]
    answers = operation["responses"].get(str(example.get("status")), {})
    for kind, response in answers.get("content", {}).items():
        if kind.endswith("json"):
            response["examples"] = _example_of(example["answer"])


def _example_of(value: Any) -> JsonObject:
    return {"example": {"value": copy.deepcopy(value)}}
