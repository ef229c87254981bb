"""Pages."""

from __future__ import annotations

from django.urls import path, re_path

from portal.archive import views

app_name = "archive"
_ITEM = "items/<str:kind>/<uuid:item_id>"
urlpatterns = [
    path("cases/", views.case_list, name="case_list"),
    path("cases/new/", views.case_new, name="case_new"),
    path("cases/<uuid:case_id>/", views.case_detail, name="case_detail"),
    path("cases/<uuid:case_id>/edit/", views.case_edit, name="case_edit"),
    path("cases/<uuid:case_id>/delete/", views.case_delete, name="case_delete"),
    path("cases/<uuid:case_id>/upload/", views.case_upload, name="case_upload"),
    path(f"{_ITEM}/", views.item_card, name="item_card"),
    path(f"{_ITEM}/retry/", views.item_retry, name="item_retry"),
    path(f"{_ITEM}/delete/", views.item_delete, name="item_delete"),
    path("slides/<uuid:item_id>/", views.item_open, {"kind": "slide"}, name="slide_open"),
    path("videos/<uuid:item_id>/", views.item_open, {"kind": "video"}, name="video_open"),
    path("canvases/<uuid:canvas_id>/", views.viewer, name="viewer"),
    re_path(r"^tiles/(?P<address>.+)$", views.tile, name="tile"),
]
