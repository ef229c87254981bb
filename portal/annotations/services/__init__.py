"""Writes of annotations."""

from portal.annotations.services.bulk import RoiStep, rois_change
from portal.annotations.services.exchange import ImportChoices, roi_import, roi_import_preview
from portal.annotations.services.fields import RoiChanges, require_as_stored
from portal.annotations.services.imports import (
    ImportUndone,
    roi_import_undo,
    roi_import_undo_start,
)
from portal.annotations.services.labels import (
    DEPTH_MOST,
    KEYS,
    LabelChanges,
    color_next,
    label_create,
    label_delete,
    label_set_ensure,
    label_set_publish,
    label_update,
    labels_order,
)
from portal.annotations.services.merges import label_merge, label_merge_preview, label_merge_undo
from portal.annotations.services.once import Once
from portal.annotations.services.properties import (
    PropertyForm,
    properties_given,
    property_type_add,
    property_type_move,
    property_type_retire,
    property_type_update,
    property_types_set,
)
from portal.annotations.services.reports import ImportItem, ImportReport, report_json
from portal.annotations.services.reviewing import review_rules_set
from portal.annotations.services.rois import (
    roi_create,
    roi_delete,
    roi_restore,
    roi_update,
    version_changes,
)
from portal.annotations.services.staged import (
    IMPORT_KIND,
    import_folder,
    roi_import_known,
    roi_import_stage,
    roi_import_start,
)

__all__ = [
    "DEPTH_MOST",
    "IMPORT_KIND",
    "KEYS",
    "ImportChoices",
    "ImportItem",
    "ImportReport",
    "ImportUndone",
    "LabelChanges",
    "Once",
    "PropertyForm",
    "RoiChanges",
    "RoiStep",
    "color_next",
    "import_folder",
    "label_create",
    "label_delete",
    "label_merge",
    "label_merge_preview",
    "label_merge_undo",
    "label_set_ensure",
    "label_set_publish",
    "label_update",
    "labels_order",
    "properties_given",
    "property_type_add",
    "property_type_move",
    "property_type_retire",
    "property_type_update",
    "property_types_set",
    "report_json",
    "require_as_stored",
    "review_rules_set",
    "roi_create",
    "roi_delete",
    "roi_import",
    "roi_import_known",
    "roi_import_preview",
    "roi_import_stage",
    "roi_import_start",
    "roi_import_undo",
    "roi_import_undo_start",
    "roi_restore",
    "roi_update",
    "rois_change",
    "version_changes",
]
