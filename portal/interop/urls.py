"""Pages: the whole case as a file, out and in. Other systems use REST."""

from __future__ import annotations

from django.urls import path

from portal.interop.rocrate import views

app_name = "interop"
urlpatterns = [
    path("cases/import/", views.case_imports, name="case_imports"),
    path("cases/import/<uuid:upload_id>/", views.case_import, name="case_import"),
    path(
        "cases/import/<uuid:upload_id>/cancel/", views.case_import_cancel, name="case_import_cancel"
    ),
    path("cases/exports/<uuid:job_id>/", views.cases_export, name="cases_export"),
    path("cases/<uuid:case_id>/export/", views.case_export, name="case_export"),
]
