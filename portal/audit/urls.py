"""Pages of the audit log."""

from __future__ import annotations

from django.urls import path

from portal.audit import views

app_name = "audit"
urlpatterns = [
    path("lab/audit/", views.entry_list, name="list"),
    path("lab/audit/export.<slug:kind>", views.entry_export, name="export"),
]
