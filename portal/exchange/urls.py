"""Pages: the whole case as a file, out and in. Other systems use REST."""

from __future__ import annotations

from django.urls import path

from portal.exchange import views

app_name = "exchange"
urlpatterns = [
    path("cases/import/", views.case_imports, name="case_imports"),
    path("cases/import/<uuid:upload_id>/", views.case_import, name="case_import"),
    path(
        "cases/import/<uuid:upload_id>/cancel/", views.case_import_cancel, name="case_import_cancel"
    ),
    path("cases/<uuid:case_id>/export/", views.case_export, name="case_export"),
]
