"""Pages of retrieval."""

from __future__ import annotations

from django.urls import path

from portal.retrieval import views

app_name = "retrieval"
urlpatterns = [
    path("rois/<uuid:roi_id>/similar/", views.similar, name="similar"),
    path("rois/<uuid:roi_id>/judge/", views.judge, name="judge"),
    path("rois/<uuid:roi_id>/embed/", views.embed, name="embed"),
    path("rois/<uuid:roi_id>/thumbnail.jpg", views.thumbnail, name="thumbnail"),
]
