"""Writes of annotations."""

from portal.annotations.services.bulk import RoiStep, rois_change
from portal.annotations.services.exchange import ImportChoices, roi_import, roi_import_preview
from portal.annotations.services.fields import RoiChanges
from portal.annotations.services.imports import ImportUndone, roi_import_undo
from portal.annotations.services.labels import (
    color_next,
    label_create,
    label_delete,
    label_set_ensure,
    label_update,
)
from portal.annotations.services.once import Once
from portal.annotations.services.reports import ImportItem, ImportReport
from portal.annotations.services.rois import (
    roi_create,
    roi_delete,
    roi_restore,
    roi_update,
    version_changes,
)

__all__ = [
    "ImportChoices",
    "ImportItem",
    "ImportReport",
    "ImportUndone",
    "Once",
    "RoiChanges",
    "RoiStep",
    "color_next",
    "label_create",
    "label_delete",
    "label_set_ensure",
    "label_update",
    "roi_create",
    "roi_delete",
    "roi_import",
    "roi_import_preview",
    "roi_import_undo",
    "roi_restore",
    "roi_update",
    "rois_change",
    "version_changes",
]
