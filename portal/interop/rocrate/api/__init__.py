"""Addresses of a case's export and import as an RO-Crate."""

from __future__ import annotations

from django.urls import path

from portal.interop.rocrate.api.exports import CaseExportApi, CasesExportApi, CasesExportFileApi
from portal.interop.rocrate.api.imports import CaseImportApi

urlpatterns = [
    path("cases/bulk/export/", CasesExportApi.as_view(), name="case-bulk-export"),
    path(
        "cases/bulk/export/<uuid:id>/",
        CasesExportFileApi.as_view(),
        name="case-bulk-export-file",
    ),
    path("cases/<uuid:id>/export/", CaseExportApi.as_view(), name="case-export"),
    path("uploads/<uuid:id>/import/", CaseImportApi.as_view(), name="upload-import"),
]
