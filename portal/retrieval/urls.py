"""Pages."""

from __future__ import annotations

from django.urls import URLPattern

app_name = "retrieval"
urlpatterns: list[URLPattern] = []
