"""REST endpoints of review."""

from __future__ import annotations

from typing import Any

from django.urls import path

from portal.review.api.live import CanvasLiveApi
from portal.review.api.reviews import ReviewApi, ReviewRulesApi, RoiReviewApi, RoiThreadApi

router_entries: list[tuple[str, Any, str]] = [("reviews", ReviewApi, "review")]
urlpatterns = [
    path("canvases/<uuid:id>/live/", CanvasLiveApi.as_view(), name="canvas-live"),
    path("rois/review/", RoiReviewApi.as_view(), name="roi-review"),
    path("rois/<uuid:id>/thread/", RoiThreadApi.as_view(), name="roi-thread"),
    path("review-rules/<uuid:id>/", ReviewRulesApi.as_view(), name="review-rules"),
]
