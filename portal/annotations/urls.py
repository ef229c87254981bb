"""Pages of labels, properties and measurements; the redirect from an ROI to the viewer."""

from __future__ import annotations

from django.urls import path

from portal.annotations.views import trash
from portal.annotations.views.property_types import properties, property_edit
from portal.annotations.views.regions import case_measurements, measurements, roi_open
from portal.annotations.views.vocabulary import label_edit, label_remove, labels

app_name = "annotations"
urlpatterns = [
    path("rois/<uuid:roi_id>/", roi_open, name="roi_open"),
    path("canvases/<uuid:canvas_id>/measurements/", measurements, name="measurements"),
    path("cases/<uuid:case_id>/measurements/", case_measurements, name="case_measurements"),
    path("lab/properties/", properties, name="properties"),
    path("lab/properties/change/", property_edit, name="property_edit"),
    path("trash/regions/", trash.trash, name="trash"),
    path("trash/regions/<uuid:roi_id>/restore/", trash.roi_restore, name="roi_restore"),
    path("trash/regions/<uuid:roi_id>/purge/", trash.roi_purge, name="roi_purge"),
    path("trash/events/", trash.trash_events, name="trash_events"),
    path(
        "trash/events/<uuid:event_id>/restore/",
        trash.video_event_restore,
        name="video_event_restore",
    ),
    path("trash/events/<uuid:event_id>/purge/", trash.video_event_purge, name="video_event_purge"),
    path("lab/labels/", labels, name="labels"),
    path("lab/labels/<uuid:label_id>/", label_edit, name="label_edit"),
    path("lab/labels/<uuid:label_id>/delete/", label_remove, name="label_remove"),
]
