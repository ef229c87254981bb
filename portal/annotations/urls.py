"""Pages of labels, properties and measurements; the redirect from an ROI to the viewer."""

from __future__ import annotations

from django.urls import path

from portal.annotations import views

app_name = "annotations"
urlpatterns = [
    path("rois/<uuid:roi_id>/", views.roi_open, name="roi_open"),
    path("canvases/<uuid:canvas_id>/measurements/", views.measurements, name="measurements"),
    path("cases/<uuid:case_id>/measurements/", views.case_measurements, name="case_measurements"),
    path("lab/properties/", views.properties, name="properties"),
    path("lab/properties/change/", views.property_edit, name="property_edit"),
    path("lab/labels/", views.labels, name="labels"),
    path("lab/labels/<uuid:label_id>/", views.label_edit, name="label_edit"),
    path("lab/labels/<uuid:label_id>/delete/", views.label_remove, name="label_remove"),
]
