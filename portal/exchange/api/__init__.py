"""REST of standards."""

from __future__ import annotations

from django.urls import path

from portal.exchange.api.events import EventsApi
from portal.exchange.api.export import CaseExportApi
from portal.exchange.api.fhir import CaseFhirApi
from portal.exchange.api.images import CanvasImageApi, CanvasImageBaseApi, CanvasImageInfoApi
from portal.exchange.api.presentation import (
    CanvasAnnotationsApi,
    CanvasManifestApi,
    CaseManifestApi,
)

_PARTS = "<str:region>/<str:size>/<str:rotation>/<str:quality>.<str:extension>"
urlpatterns = [
    path("events/", EventsApi.as_view(), name="events"),
    path("iiif/<uuid:id>", CanvasImageBaseApi.as_view(), name="canvas-image-base"),
    path("iiif/<uuid:id>/info.json", CanvasImageInfoApi.as_view(), name="canvas-image-info"),
    path(f"iiif/<uuid:id>/{_PARTS}", CanvasImageApi.as_view(), name="canvas-image"),
    path("canvases/<uuid:id>/manifest/", CanvasManifestApi.as_view(), name="canvas-manifest"),
    path(
        "canvases/<uuid:id>/annotations/",
        CanvasAnnotationsApi.as_view(),
        name="canvas-annotations",
    ),
    path("cases/<uuid:id>/export/", CaseExportApi.as_view(), name="case-export"),
    path("cases/<uuid:id>/fhir/", CaseFhirApi.as_view(), name="case-fhir"),
    path("cases/<uuid:id>/manifest/", CaseManifestApi.as_view(), name="case-manifest"),
]
