"""Pages of standards: the whole case as a file. Other systems come by REST."""

from __future__ import annotations

from django.urls import path

from portal.exchange import views

app_name = "exchange"
urlpatterns = [
    path("cases/<uuid:case_id>/export/", views.case_export, name="case_export"),
]
