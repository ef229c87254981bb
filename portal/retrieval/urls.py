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
    path("queries/", views.queries, name="queries"),
    path("queries/ask/", views.ask, name="query_ask"),
    path("queries/picture/", views.picture, name="query_new_picture"),
    path("queries/<uuid:query_id>/", views.query, name="query"),
    path("queries/<uuid:query_id>/mark/", views.query_mark, name="query_mark"),
    path("queries/<uuid:query_id>/remove/", views.query_remove, name="query_remove"),
    path("queries/<uuid:query_id>/picture.jpg", views.query_thumbnail, name="query_picture"),
]
