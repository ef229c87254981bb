"""Attributes of patient, study and series of a DICOM object, from the portal's records."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

LO_CHARACTERS = 64
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]+")


def single_value(text: str, *, max_characters: int | None = None) -> str:
    """Convert a text to one value of an attribute.

    Control characters and backslashes, which separate values (DICOM PS3.5, section 6.2), are
    replaced.

    Args:
        max_characters: Length of the value, as ``LO_CHARACTERS``; None for no limit.
    """
    return _CONTROLS.sub(" ", text).replace("\\", "/").strip()[:max_characters].strip()


@dataclass(frozen=True, slots=True)
class StudyAttributes:
    """Attributes of patient, study and series.

    Attributes:
        patient_id: a pseudonym; empty if the reader may not know it.
        sex: F, M, O or empty.
        series_number: within the study, from 1; None if it was not counted.
    """

    patient_id: str
    sex: str
    study_uid: str
    accession: str
    study_at: datetime
    study_name: str
    series_uid: str
    series_name: str
    series_number: int | None = None


def add_patient(data: Dataset, study: StudyAttributes) -> None:
    """Add the patient, identified only by a pseudonym."""
    data.PatientName = data.PatientBirthDate = ""
    data.PatientID, data.PatientSex = single_value(study.patient_id), study.sex
    data.PatientIdentityRemoved = "YES"
    if "DeidentificationMethod" not in data and "DeidentificationMethodCodeSequence" not in data:
        data.DeidentificationMethod = "Patient, people and places are not kept"


def add_study(data: Dataset, study: StudyAttributes) -> None:
    """Add the attributes of the study."""
    data.StudyInstanceUID = study.study_uid
    data.AccessionNumber = single_value(study.accession)
    data.StudyDate = study.study_at.strftime("%Y%m%d")
    data.StudyTime = study.study_at.strftime("%H%M%S")
    data.ReferringPhysicianName = data.StudyID = ""
    if name := single_value(study.study_name, max_characters=LO_CHARACTERS):
        data.StudyDescription = name


def add_series(data: Dataset, study: StudyAttributes) -> None:
    """Add the attributes of the series."""
    data.SeriesInstanceUID = study.series_uid
    data.Modality = "SM"
    data.SeriesNumber = study.series_number
    if name := single_value(study.series_name, max_characters=LO_CHARACTERS):
        data.SeriesDescription = name


def add_all(data: Dataset, study: StudyAttributes, uid: str) -> None:
    """Add patient, study and series, and the ``uid`` of the instance."""
    add_patient(data, study)
    add_study(data, study)
    add_series(data, study)
    data.SOPInstanceUID = uid
