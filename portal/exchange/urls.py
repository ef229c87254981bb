"""Pages: none, other systems come by REST."""

from __future__ import annotations

from django.urls import URLPattern

app_name = "exchange"
urlpatterns: list[URLPattern] = []
