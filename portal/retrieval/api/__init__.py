"""REST: encoders, searches and their reports, maps, and learning."""

from __future__ import annotations

from django.urls import path

from portal.retrieval.api.learning import LearningViewSet
from portal.retrieval.api.maps import (
    CanvasLookApi,
    LabelConfirmationApi,
    MapViewSet,
    UnannotatedApi,
)
from portal.retrieval.api.places import RoiPlacesApi
from portal.retrieval.api.queries import QueryViewSet
from portal.retrieval.api.reports import ReportViewSet
from portal.retrieval.api.search import (
    EncoderViewSet,
    RoiJudgementApi,
    RoiJudgementsApi,
    RoiSimilarApi,
    SearchApi,
)
from portal.retrieval.api.why import QueryWhyApi, RoiWhyApi

router_entries = [
    ("encoders", EncoderViewSet, "encoder"),
    ("maps", MapViewSet, "map"),
    ("learnings", LearningViewSet, "learning"),
    ("queries", QueryViewSet, "query"),
    ("reports", ReportViewSet, "report"),
]
urlpatterns = [
    path("unannotated/", UnannotatedApi.as_view(), name="unannotated"),
    path(
        "canvases/<uuid:canvas_id>/look-through/",
        CanvasLookApi.as_view(),
        name="canvas-look-through",
    ),
    path(
        "rois/<uuid:roi_id>/label-confirmation/",
        LabelConfirmationApi.as_view(),
        name="roi-label-confirmation",
    ),
    path("search/", SearchApi.as_view(), name="search"),
    path("rois/<uuid:roi_id>/similar/", RoiSimilarApi.as_view(), name="roi-similar"),
    path("rois/<uuid:roi_id>/similar/<uuid:other_id>/", RoiWhyApi.as_view(), name="roi-why"),
    path(
        "queries/<uuid:query_id>/similar/<uuid:other_id>/", QueryWhyApi.as_view(), name="query-why"
    ),
    path("rois/<uuid:roi_id>/places/", RoiPlacesApi.as_view(), name="roi-places"),
    path("rois/<uuid:roi_id>/judgements/", RoiJudgementsApi.as_view(), name="roi-judgements"),
    path(
        "rois/<uuid:roi_id>/judgements/<uuid:other_id>/",
        RoiJudgementApi.as_view(),
        name="roi-judgement",
    ),
]
