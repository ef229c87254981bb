"""Answers of DICOMweb in DICOM's JSON model: studies, series, instances, whole data sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ml.imaging.dicom.patient import StudyAttributes, add_patient, add_series, add_study
from ml.imaging.dicom.uids import WHOLE_SLIDE
from ml.imaging.dicom.writing import json_of
from ml.imaging.formats.frame_groups import PER_FRAME
from ml.types import JsonObject

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

ONLINE = "ONLINE"


def study_json(
    attributes: StudyAttributes, *, series: int, instances: int, address: str
) -> JsonObject:
    """A study of a search.

    Args:
        address: where it is retrieved.
    """
    data = _study_dataset(attributes)
    data.ModalitiesInStudy = ["SM"]
    data.SOPClassesInStudy = WHOLE_SLIDE
    data.NumberOfStudyRelatedSeries, data.NumberOfStudyRelatedInstances = series, instances
    return _dicom_json(data, address)


def series_json(attributes: StudyAttributes, *, instances: int, address: str) -> JsonObject:
    """A series of a search."""
    data = _study_dataset(attributes)
    add_series(data, attributes)
    data.NumberOfSeriesRelatedInstances = instances
    return _dicom_json(data, address)


def instance_json(
    brief: Dataset, attributes: StudyAttributes, *, uid: str, syntax: str, address: str
) -> JsonObject:
    """An instance of a search."""
    data = _study_dataset(attributes)
    add_series(data, attributes)
    data.update(brief)
    data.SOPInstanceUID = uid
    data.AvailableTransferSyntaxUID = syntax
    return _dicom_json(data, address)


def data_json(
    data: Dataset, *, syntax: str, bulk: Callable[[str], str], groups: Iterable[Dataset]
) -> JsonObject:
    """Data set without pixels.

    Args:
        groups: Per-frame functional groups.
    """
    data.AvailableTransferSyntaxUID = syntax
    data.SpecificCharacterSet = "ISO_IR 192"
    document = json_of(data, bulk)
    if items := [json_of(group, bulk) for group in groups]:
        document[f"{PER_FRAME:08X}"] = {"vr": "SQ", "Value": items}
    return dict(sorted(document.items()))


def _study_dataset(attributes: StudyAttributes) -> Dataset:
    from pydicom.dataset import Dataset

    data = Dataset()
    data.SpecificCharacterSet = "ISO_IR 192"  # JSON is in UTF-8
    add_patient(data, attributes)
    add_study(data, attributes)
    return data


def _dicom_json(data: Dataset, address: str) -> JsonObject:
    data.InstanceAvailability = ONLINE
    data.RetrieveURL = address
    return json_of(data, lambda _: address)
