"""REST: searches, judgements, explanations and reports."""

from __future__ import annotations

from django.urls import path

from portal.search.api.explanations import QueryExplanationApi, RoiExplanationApi
from portal.search.api.queries import QueryViewSet
from portal.search.api.reports import ReportViewSet
from portal.search.api.similar_cases import (
    RoiJudgementApi,
    RoiJudgementsApi,
    RoiSimilarApi,
    SearchApi,
)

router_entries = [("queries", QueryViewSet, "query"), ("reports", ReportViewSet, "report")]
urlpatterns = [
    path("search/", SearchApi.as_view(), name="search"),
    path("rois/<uuid:roi_id>/similar/", RoiSimilarApi.as_view(), name="roi-similar"),
    path(
        "rois/<uuid:roi_id>/similar/<uuid:other_id>/",
        RoiExplanationApi.as_view(),
        name="roi-explanation",
    ),
    path(
        "queries/<uuid:query_id>/similar/<uuid:other_id>/",
        QueryExplanationApi.as_view(),
        name="query-explanation",
    ),
    path("rois/<uuid:roi_id>/judgements/", RoiJudgementsApi.as_view(), name="roi-judgements"),
    path(
        "rois/<uuid:roi_id>/judgements/<uuid:other_id>/",
        RoiJudgementApi.as_view(),
        name="roi-judgement",
    ),
]
