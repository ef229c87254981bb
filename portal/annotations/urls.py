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
    *(url for kind in trash.KINDS for url in kind.urls),
    path("lab/labels/", labels, name="labels"),
    path("lab/labels/<uuid:label_id>/", label_edit, name="label_edit"),
    path("lab/labels/<uuid:label_id>/delete/", label_remove, name="label_remove"),
]
