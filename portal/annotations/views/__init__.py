"""Pages of annotations."""

from portal.annotations.views.kept import properties, property_edit
from portal.annotations.views.regions import case_measurements, measurements, roi_open
from portal.annotations.views.vocabulary import label_edit, label_remove, labels

__all__ = [
    "case_measurements",
    "label_edit",
    "label_remove",
    "labels",
    "measurements",
    "properties",
    "property_edit",
    "roi_open",
]
