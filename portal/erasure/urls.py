"""Pages of erasure."""

from __future__ import annotations

from django.urls import path

from portal.erasure.views import erasures

app_name = "erasure"
urlpatterns = [
    path("lab/erasure/", erasures.erasures, name="erasures"),
    path("lab/erasure/<uuid:erasure_id>/", erasures.erasure, name="erasure"),
]
