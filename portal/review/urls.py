"""URLs of the review queue."""

from __future__ import annotations

from django.urls import path

from portal.review import views

app_name = "review"
urlpatterns = [
    path("review/", views.queue, name="queue"),
    path("review/rules/", views.rules, name="rules"),
]
