"""Addresses of the IIIF Image and Presentation APIs."""

from __future__ import annotations

from django.urls import path

from portal.interop.iiif.api.images import (
    CanvasImageApi,
    CanvasImageBaseApi,
    CanvasImageInfoApi,
)
from portal.interop.iiif.api.presentation import CanvasManifestApi, CaseManifestApi

_PARTS = "<str:region>/<str:size>/<str:rotation>/<str:quality>.<str:extension>"
urlpatterns = [
    path("iiif/<uuid:id>", CanvasImageBaseApi.as_view(), name="canvas-image-base"),
    path("iiif/<uuid:id>/info.json", CanvasImageInfoApi.as_view(), name="canvas-image-info"),
    path(f"iiif/<uuid:id>/{_PARTS}", CanvasImageApi.as_view(), name="canvas-image"),
    path("canvases/<uuid:id>/manifest/", CanvasManifestApi.as_view(), name="canvas-manifest"),
    path("cases/<uuid:id>/manifest/", CaseManifestApi.as_view(), name="case-manifest"),
]
