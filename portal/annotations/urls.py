"""Pages."""

from __future__ import annotations

from django.urls import URLPattern

app_name = "annotations"
urlpatterns: list[URLPattern] = []
