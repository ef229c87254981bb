"""Pages of webhooks."""

from __future__ import annotations

from django.urls import path

from portal.webhooks import views

app_name = "webhooks"
urlpatterns = [
    path("lab/webhooks/", views.webhook_list, name="webhooks"),
    path("lab/webhooks/<uuid:webhook_id>/", views.webhook, name="webhook"),
    path("lab/webhooks/<uuid:webhook_id>/edit/", views.webhook_edit, name="edit"),
    path("lab/webhooks/<uuid:webhook_id>/switch/", views.webhook_switch, name="switch"),
    path("lab/webhooks/<uuid:webhook_id>/secret/", views.webhook_secret, name="secret"),
    path("lab/webhooks/<uuid:webhook_id>/ping/", views.webhook_ping, name="ping"),
    path("lab/webhooks/<uuid:webhook_id>/replay/", views.webhook_replay, name="replay"),
    path("lab/webhooks/<uuid:webhook_id>/delete/", views.webhook_delete, name="delete"),
]
