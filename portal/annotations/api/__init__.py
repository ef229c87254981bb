"""REST endpoints of ROIs, their exchange and labels."""

from __future__ import annotations

from typing import Any

from django.urls import path

from portal.annotations.api.bulk import RoiBulkApi
from portal.annotations.api.exchange import CanvasRoiFileApi
from portal.annotations.api.imports import (
    RoiImportApi,
    RoiImportStartApi,
    RoiImportTableApi,
    RoiImportUndoApi,
)
from portal.annotations.api.labels import (
    LabelApi,
    LabelMergeUndoApi,
    LabelOrderApi,
    LabelVersionApi,
)
from portal.annotations.api.outlines import CanvasOutlineApi
from portal.annotations.api.properties import PropertyTypesApi
from portal.annotations.api.rois import RoiApi
from portal.annotations.api.trash import RoiPurgeApi, VideoEventPurgeApi
from portal.annotations.api.video_events import VideoEventApi

router_entries: list[tuple[str, Any, str]] = [
    ("rois", RoiApi, "roi"),
    ("labels", LabelApi, "label"),
    ("label-versions", LabelVersionApi, "label-version"),
    ("video-events", VideoEventApi, "video-event"),
]
urlpatterns = [
    path("labels/order/", LabelOrderApi.as_view(), name="label-order"),
    path("labels/properties/", PropertyTypesApi.as_view(), name="label-properties"),
    path("label-merges/<uuid:id>/undo/", LabelMergeUndoApi.as_view(), name="label-merge-undo"),
    path("rois/<uuid:roi_id>/purge/", RoiPurgeApi.as_view(), name="roi-purge"),
    path(
        "video-events/<uuid:event_id>/purge/",
        VideoEventPurgeApi.as_view(),
        name="video-event-purge",
    ),
    path("rois/bulk/", RoiBulkApi.as_view(), name="roi-bulk"),
    path("canvases/<uuid:id>/roi-file/", CanvasRoiFileApi.as_view(), name="canvas-roi-file"),
    path("canvases/<uuid:id>/outline/", CanvasOutlineApi.as_view(), name="canvas-outline"),
    path("roi-imports/<uuid:import_id>/", RoiImportApi.as_view(), name="roi-import"),
    path(
        "roi-imports/<uuid:import_id>/start/", RoiImportStartApi.as_view(), name="roi-import-start"
    ),
    path(
        "roi-imports/<uuid:import_id>/report.csv",
        RoiImportTableApi.as_view(),
        name="roi-import-table",
    ),
    path("roi-imports/<uuid:import_id>/undo/", RoiImportUndoApi.as_view(), name="roi-import-undo"),
]
