"""Valid requests, so that a refusal is one of access and the answer beyond it is the real one."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from portal.annotations.models import Label
from portal.archive.models.shares import today
from portal.archive.serializers.canvases import tile_url
from tests import world


def case_body(scene: Any) -> dict[str, Any]:
    return {"accession": "W-2", "sex": "unknown", "age_band": "unknown"}


def bulk_tags_body(scene: Any) -> dict[str, Any]:
    return {"cases": [scene.ids["cases"]], "add": ["teaching"]}


def bulk_details_body(scene: Any) -> dict[str, Any]:
    return {"cases": [scene.ids["cases"]], "organ": "Caecum"}


def bulk_shares_body(scene: Any) -> dict[str, Any]:
    return share_body(scene) | {"cases": [scene.ids["cases"]]}


def title_body(scene: Any) -> dict[str, Any]:
    return {"name": "Another title"}


def modality_body(scene: Any) -> dict[str, Any]:
    return {"modality": "endoscopy"}


def stain_body(scene: Any) -> dict[str, Any]:
    return {"stain": "PAS"}


def roi_body(scene: Any) -> dict[str, Any]:
    ring = [[20, 20], [300, 20], [300, 300], [20, 20]]
    geometry = {"type": "Polygon", "coordinates": [ring]}
    return {"canvas": scene.ids["canvases"], "geometry": geometry}


def video_event_body(scene: Any) -> dict[str, Any]:
    return {"canvas": scene.ids["video_canvases"], "name": "Caecum", "first_index": 1}


def roi_steps_body(scene: Any) -> dict[str, Any]:
    step = {"do": "restore", "id": scene.ids["rois"], "version": 1}
    return {"canvas": scene.ids["canvases"], "changes": [step]}


def outline_body(scene: Any) -> dict[str, Any]:
    return {"x": 200, "y": 200, "window": [0, 0, 704, 576]}


def features_body(scene: Any) -> dict[str, Any]:
    feature = {"type": "Feature", "geometry": roi_body(scene)["geometry"], "properties": {}}
    return {"type": "FeatureCollection", "features": [feature]}


def slide_body(scene: Any) -> dict[str, Any]:
    path = world.slide_file(scene.folder)
    return {"case": scene.ids["cases"], "file": path.open("rb")}


def video_body(scene: Any) -> dict[str, Any]:
    path = world.video_file(scene.folder)
    return {"case": scene.ids["cases"], "file": path.open("rb")}


def clip_body(scene: Any) -> dict[str, Any]:
    return {"first_index": 2, "last_index": 5}


def followup_body(scene: Any) -> dict[str, Any]:
    return {"roi": scene.ids["rois"], "target": scene.ids["video_canvases"]}


def judgement_body(scene: Any) -> dict[str, Any]:
    return {"other": scene.ids["rois"], "verdict": "alike"}


def query_body(scene: Any) -> dict[str, Any]:
    return {"source": "tissue", "canvas": scene.ids["canvases"]}


def token_body(scene: Any) -> dict[str, Any]:
    return {"name": "LIS", "scope": "read", "days": 30, "expires_in_days": 30}


def share_body(scene: Any) -> dict[str, Any]:
    return {"with_lab": "East", "until": str(today() + timedelta(days=9))}


def erasure_body(scene: Any) -> dict[str, Any]:
    return {"accession": "W-9"}


def erasure_order_body(scene: Any) -> dict[str, Any]:
    return {"accession": "W-9", "typed": "W-9", "lab": scene.ids["labs"]}


def label_body(scene: Any) -> dict[str, Any]:
    return {"name": "Fresh", "color": "#112233"}


def label_order_body(scene: Any) -> dict[str, Any]:
    lab = scene.world.case.lab
    labels = Label.objects.filter(lab=lab, retired_at=None).order_by("position")
    return {"lab": scene.ids["labs"], "labels": [{"id": str(label.pk)} for label in labels]}


def property_types_body(scene: Any) -> dict[str, Any]:
    types = [{"key": "Grade", "kind": "choice", "choices": ["1", "2"]}]
    return {"lab": scene.ids["labs"], "properties": types}


def label_merge_body(scene: Any) -> dict[str, Any]:
    other = Label.objects.filter(lab=scene.world.case.lab, retired_at=None)[0]
    return {"into": str(other.pk)}


def label_version_body(scene: Any) -> dict[str, Any]:
    return {"lab": scene.ids["labs"], "note": "first"}


def review_body(scene: Any) -> dict[str, Any]:
    rois = [{"id": scene.ids["rois"], "version": 1}]
    return {"state": "submitted", "rois": rois}


def presence_body(scene: Any) -> dict[str, Any]:
    return {"tab": "8c1b7c0e-93a5-4f0e-8a53-5be6b6e2a1d4"}


def review_rules_body(scene: Any) -> dict[str, Any]:
    return {"may_judge_own": False}


def thresholds_body(scene: Any) -> dict[str, Any]:
    return {
        "weak_od": 0.1,
        "moderate_od": 0.3,
        "strong_od": 0.5,
        "nucleus_od": 0.1,
        "min_area_um2": 10.0,
        "max_area_um2": 400.0,
    }


def intake_rules_body(scene: Any) -> dict[str, Any]:
    return {
        "takes_names_out": True,
        "must_be_clean": True,
        "titles_from_files": False,
        "identifying_text": "hold",
        "other_text": "warn",
        "faces": "warn",
        "ignored_words": ["CHROMA"],
    }


def redact_body(scene: Any) -> dict[str, Any]:
    return {"boxes": [{"x": 0.1, "y": 0.1, "width": 0.2, "height": 0.05}]}


def template_body(scene: Any) -> dict[str, Any]:
    return redact_body(scene) | {"upload": scene.ids["quarantine"]}


def redact_form(scene: Any) -> dict[str, Any]:
    return {"boxes": json.dumps(redact_body(scene)["boxes"])}


def release_body(scene: Any) -> dict[str, Any]:
    return {"reason": "It shows a scale, no name."}


def vocabulary_body(scene: Any) -> bytes:
    return b"field,term,code\norgan,Caecum,C18.0\n"


def vocabulary_form(scene: Any) -> dict[str, Any]:
    return {"text": vocabulary_body(scene).decode()}


def comment_body(scene: Any) -> dict[str, Any]:
    return {"text": "Larger than the last one?"}


def label_in_body(scene: Any) -> dict[str, Any]:
    return label_body(scene) | {"lab": scene.ids["labs"]}


def webhook_body(scene: Any) -> dict[str, Any]:
    return {"name": "LIS", "url": "https://lis.access.example/", "lab": scene.ids["labs"]}


def tile_path(scene: Any, actor: str) -> str:
    return tile_url(scene.world.canvas).format(z=0, x=0, y=0)
