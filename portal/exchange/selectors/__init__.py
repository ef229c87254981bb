"""Reads for other systems."""

from portal.exchange.selectors.canvases import case_canvases, image_get, roi_page
from portal.exchange.selectors.dicom import (
    dicom_instances,
    dicom_object,
    dicom_series,
    dicom_slide,
    dicom_studies,
    dicom_study,
)
from portal.exchange.selectors.events import Stretch, WantedEvents, event_latest, event_stretch
from portal.exchange.selectors.imports import (
    IMPORT_KIND,
    Imports,
    import_job,
    imports_of,
)
from portal.exchange.selectors.whole import (
    EXPORT_KIND,
    WholeCase,
    case_to_export,
    case_whole,
    export_folder,
    export_job,
    export_path,
    import_folder,
    mosaic_files,
    rows_of,
)

__all__ = [
    "EXPORT_KIND",
    "IMPORT_KIND",
    "Imports",
    "Stretch",
    "WantedEvents",
    "WholeCase",
    "case_canvases",
    "case_to_export",
    "case_whole",
    "dicom_instances",
    "dicom_object",
    "dicom_series",
    "dicom_slide",
    "dicom_studies",
    "dicom_study",
    "event_latest",
    "event_stretch",
    "export_folder",
    "export_job",
    "export_path",
    "image_get",
    "import_folder",
    "import_job",
    "imports_of",
    "mosaic_files",
    "roi_page",
    "rows_of",
]
