"""To which patient, study and series an object belongs: what the portal says, not the file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

LO_CHARACTERS = 64
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]+")


def single_value(text: str, *, most: int | None = None) -> str:
    """A text as one value of an attribute: no control characters, and no backslash, which would
    begin another value (DICOM PS3.5, section 6.2).

    Args:
        most: Characters that are kept, as ``LO_CHARACTERS``; None for all.
    """
    return _CONTROLS.sub(" ", text).replace("\\", "/").strip()[:most].strip()


@dataclass(frozen=True, slots=True)
class Belongs:
    """The attributes of patient, study and series.

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


def add_patient(data: Dataset, whose: Belongs) -> None:
    """The patient, by a pseudonym alone."""
    data.PatientName = data.PatientBirthDate = ""
    data.PatientID, data.PatientSex = single_value(whose.patient_id), whose.sex
    data.PatientIdentityRemoved = "YES"
    if "DeidentificationMethod" not in data and "DeidentificationMethodCodeSequence" not in data:
        data.DeidentificationMethod = "Patient, people and places are not kept"


def add_study(data: Dataset, whose: Belongs) -> None:
    """The study."""
    data.StudyInstanceUID = whose.study_uid
    data.AccessionNumber = single_value(whose.accession)
    data.StudyDate = whose.study_at.strftime("%Y%m%d")
    data.StudyTime = whose.study_at.strftime("%H%M%S")
    data.ReferringPhysicianName = data.StudyID = ""
    if name := single_value(whose.study_name, most=LO_CHARACTERS):
        data.StudyDescription = name


def add_series(data: Dataset, whose: Belongs) -> None:
    """The series."""
    data.SeriesInstanceUID = whose.series_uid
    data.Modality = "SM"
    data.SeriesNumber = whose.series_number
    if name := single_value(whose.series_name, most=LO_CHARACTERS):
        data.SeriesDescription = name


def add_all(data: Dataset, whose: Belongs, uid: str) -> None:
    """Make a data set one of its study; ``uid``: of the instance."""
    add_patient(data, whose)
    add_study(data, whose)
    add_series(data, whose)
    data.SOPInstanceUID = uid
