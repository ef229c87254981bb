"""Pages of keeping."""

from __future__ import annotations

from django.urls import path

from portal.keeping.views import bin, erasures

app_name = "keeping"
urlpatterns = [
    path("lab/erasure/", erasures.erasures, name="erasures"),
    path("lab/erasure/<uuid:erasure_id>/", erasures.erasure, name="erasure"),
    path("bin/", bin.bin_page, name="bin"),
    path("bin/<uuid:entry_id>/restore/", bin.bin_restore, name="bin_restore"),
    path("bin/<uuid:entry_id>/purge/", bin.bin_purge, name="bin_purge"),
    path("bin/regions/<uuid:roi_id>/restore/", bin.roi_restore, name="roi_restore"),
    path("bin/regions/<uuid:roi_id>/purge/", bin.roi_purge, name="roi_purge"),
]
