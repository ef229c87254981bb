"""Pages of the inbox."""

from __future__ import annotations

from django.urls import path

from portal.inbox import views

app_name = "inbox"
urlpatterns = [
    path("inbox/", views.inbox, name="inbox"),
    path("inbox/read/", views.read, name="read"),
    path("account/notifications/", views.preferences, name="preferences"),
]
