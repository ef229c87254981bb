"""Reads of annotations."""

from portal.annotations.selectors.embedded import embedded_probe_register, rois_embedded
from portal.annotations.selectors.frames import FrameRef, frame_resolve
from portal.annotations.selectors.labels import (
    label_get,
    label_list,
    label_of_lab,
    labels_with_use,
    labs_without_labels,
)
from portal.annotations.selectors.rois import (
    RoiFilter,
    roi_export,
    roi_get,
    roi_import_get,
    roi_list,
    roi_revisions,
    rois_by_id,
)

__all__ = [
    "FrameRef",
    "RoiFilter",
    "embedded_probe_register",
    "frame_resolve",
    "label_get",
    "label_list",
    "label_of_lab",
    "labels_with_use",
    "labs_without_labels",
    "roi_export",
    "roi_get",
    "roi_import_get",
    "roi_list",
    "roi_revisions",
    "rois_by_id",
    "rois_embedded",
]
