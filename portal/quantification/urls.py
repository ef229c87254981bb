"""Page of a lab's thresholds."""

from __future__ import annotations

from django.urls import path

from portal.quantification import views

app_name = "quantification"
urlpatterns = [
    path("lab/quantification/", views.thresholds, name="settings"),
]
