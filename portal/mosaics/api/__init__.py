"""REST of mosaics and follow-ups."""

from __future__ import annotations

from typing import Any

from django.urls import path

from portal.mosaics.api.followups import FollowupViewSet
from portal.mosaics.api.mosaics import MosaicViewSet
from portal.mosaics.api.tracking import RoiTrackApi


def _file(route: str, method: str, name: str) -> Any:
    view = MosaicViewSet.as_view({"get": method})
    return path(f"mosaics/<uuid:pk>/{route}", view, name=name)


router_entries: list[tuple[str, Any, str]] = [
    ("mosaics", MosaicViewSet, "mosaic"),
    ("followups", FollowupViewSet, "followup"),
]
urlpatterns = [
    _file("layers/<slug:name>.png", "layer", "mosaic-layer"),
    _file("preview.jpg", "preview", "mosaic-preview"),
    _file("image.png", "image", "mosaic-image"),
    _file("pyramid.tif", "pyramid", "mosaic-pyramid"),
    _file("manifest.json", "manifest", "mosaic-manifest"),
    path(
        "followups/<uuid:pk>/matches/<int:rank>.jpg",
        FollowupViewSet.as_view({"get": "picture"}),
        name="followup-picture",
    ),
    path("rois/<uuid:roi_id>/track/", RoiTrackApi.as_view(), name="roi-track"),
]
