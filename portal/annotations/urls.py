"""Pages of labels."""

from __future__ import annotations

from django.urls import path

from portal.annotations import views

app_name = "annotations"
urlpatterns = [
    path("lab/labels/", views.labels, name="labels"),
    path("lab/labels/<uuid:label_id>/", views.label_edit, name="label_edit"),
    path("lab/labels/<uuid:label_id>/delete/", views.label_remove, name="label_remove"),
]
