"""Pages of mosaics."""

from __future__ import annotations

from django.urls import path

from portal.mosaics.views import followups as followup_views
from portal.mosaics.views import mosaics as views

app_name = "mosaics"
urlpatterns = [
    path("mosaics/", views.mosaic_list, name="mosaic_list"),
    path("mosaics/<uuid:mosaic_id>/", views.mosaic_detail, name="mosaic_detail"),
    path("mosaics/<uuid:mosaic_id>/delete/", views.mosaic_delete, name="mosaic_delete"),
    path("cases/<uuid:case_id>/mosaics/", views.case_mosaics, name="case_mosaics"),
    path("rois/<uuid:roi_id>/followup/", followup_views.followup_new, name="followup_new"),
    path("followups/<uuid:followup_id>/", followup_views.followup_detail, name="followup_detail"),
    path("videos/<uuid:video_id>/mosaics/", views.video_mosaics, name="video_mosaics"),
    path("videos/<uuid:video_id>/mosaic/", views.mosaic_create, name="mosaic_create"),
]
