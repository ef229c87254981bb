"""REST: maps of a lab's regions, images to annotate next, similar regions of a slide."""

from __future__ import annotations

from django.urls import path

from portal.explore.api.maps import (
    LabelConfirmationApi,
    MapViewSet,
    TissueSampleApi,
    UnannotatedApi,
)
from portal.explore.api.similar_regions import SimilarRegionsApi

router_entries = [("maps", MapViewSet, "map")]
urlpatterns = [
    path("unannotated/", UnannotatedApi.as_view(), name="unannotated"),
    path(
        "canvases/<uuid:canvas_id>/look-through/",
        TissueSampleApi.as_view(),
        name="canvas-look-through",
    ),
    path(
        "rois/<uuid:roi_id>/label-confirmation/",
        LabelConfirmationApi.as_view(),
        name="roi-label-confirmation",
    ),
    path(
        "rois/<uuid:roi_id>/similar-regions/",
        SimilarRegionsApi.as_view(),
        name="roi-similar-regions",
    ),
]
