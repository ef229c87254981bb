"""Pages about all regions of a lab."""

from __future__ import annotations

from django.urls import path

from portal.explore import views

app_name = "explore"
urlpatterns = [
    path("browse/", views.browse, name="browse"),
    path("browse/near-duplicates/", views.browse_duplicates, name="browse_duplicates"),
    path("browse/unlike/", views.browse_unlike, name="browse_unlike"),
    path("browse/unannotated/", views.browse_unannotated, name="browse_unannotated"),
    path("browse/draw/", views.browse_draw, name="browse_draw"),
    path("rois/<uuid:roi_id>/label/", views.browse_label, name="browse_label"),
    path("canvases/<uuid:canvas_id>/look-through/", views.look_through, name="look_through"),
]
