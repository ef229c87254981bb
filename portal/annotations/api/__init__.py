"""REST of ROIs, their exchange and labels."""

from __future__ import annotations

from typing import Any

from django.urls import path

from portal.annotations.api.bulk import RoiBulkApi
from portal.annotations.api.exchange import CanvasGeoJsonApi, RoiImportUndoApi
from portal.annotations.api.labels import LabelApi
from portal.annotations.api.rois import RoiApi

router_entries: list[tuple[str, Any, str]] = [
    ("rois", RoiApi, "roi"),
    ("labels", LabelApi, "label"),
]
urlpatterns = [
    path("rois/bulk/", RoiBulkApi.as_view(), name="roi-bulk"),
    path("canvases/<uuid:id>/rois.geojson", CanvasGeoJsonApi.as_view(), name="canvas-rois-geojson"),
    path("roi-imports/<uuid:import_id>/undo/", RoiImportUndoApi.as_view(), name="roi-import-undo"),
]
