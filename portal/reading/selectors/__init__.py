"""Reads of reading. All begin with what the person may see."""

from portal.reading.selectors.results import (
    ImageResult,
    agreement_of,
    image_result,
    image_results,
    label_key,
)
from portal.reading.selectors.studies import ImageReadings, progress_of, study_get, study_list
from portal.reading.selectors.work import (
    Load,
    WorkFilter,
    assignment_get,
    load_of,
    work_list,
    work_next,
    work_on_canvas,
    work_open_count,
)

__all__ = [
    "ImageReadings",
    "ImageResult",
    "Load",
    "WorkFilter",
    "agreement_of",
    "assignment_get",
    "image_result",
    "image_results",
    "label_key",
    "load_of",
    "progress_of",
    "study_get",
    "study_list",
    "work_list",
    "work_next",
    "work_on_canvas",
    "work_open_count",
]
