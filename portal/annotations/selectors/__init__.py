"""Reads of annotations."""

from portal.annotations.selectors.embedded import embedded_probe_register, rois_embedded
from portal.annotations.selectors.frames import FrameRef, frame_resolve
from portal.annotations.selectors.labels import (
    LabelRow,
    label_get,
    label_list,
    label_merge_get,
    label_of_lab,
    label_tree,
    label_version_now,
    label_versions,
    labels_with_use,
    labs_without_labels,
    merges_of,
    property_types_of,
)
from portal.annotations.selectors.measurements import MOST_ROWS, Measurements, measurements_of
from portal.annotations.selectors.outlines import ProposedOutlines, outlines_propose
from portal.annotations.selectors.reviewing import is_own, review_rules_of
from portal.annotations.selectors.rois import (
    RoiFilter,
    roi_export,
    roi_get,
    roi_import_get,
    roi_revisions,
    rois_by_id,
)
from portal.annotations.selectors.rows import RoiRow, RoiRows, roi_rows_by_id, roi_rows_small

__all__ = [
    "MOST_ROWS",
    "FrameRef",
    "LabelRow",
    "Measurements",
    "ProposedOutlines",
    "RoiFilter",
    "RoiRow",
    "RoiRows",
    "embedded_probe_register",
    "frame_resolve",
    "is_own",
    "label_get",
    "label_list",
    "label_merge_get",
    "label_of_lab",
    "label_tree",
    "label_version_now",
    "label_versions",
    "labels_with_use",
    "labs_without_labels",
    "measurements_of",
    "merges_of",
    "outlines_propose",
    "property_types_of",
    "review_rules_of",
    "roi_export",
    "roi_get",
    "roi_import_get",
    "roi_revisions",
    "roi_rows_by_id",
    "roi_rows_small",
    "rois_by_id",
    "rois_embedded",
]
