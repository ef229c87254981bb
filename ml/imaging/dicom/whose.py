"""To which patient, study and series an object belongs: what the portal says, not the file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydicom.dataset import Dataset


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
    data.PatientID, data.PatientSex = whose.patient_id, whose.sex
    data.PatientIdentityRemoved = "YES"
    if "DeidentificationMethod" not in data and "DeidentificationMethodCodeSequence" not in data:
        data.DeidentificationMethod = "Patient, people and places are not kept"


def add_study(data: Dataset, whose: Belongs) -> None:
    """The study."""
    data.StudyInstanceUID = whose.study_uid
    data.AccessionNumber = whose.accession
    data.StudyDate = whose.study_at.strftime("%Y%m%d")
    data.StudyTime = whose.study_at.strftime("%H%M%S")
    data.ReferringPhysicianName = data.StudyID = ""
    if whose.study_name:
        data.StudyDescription = whose.study_name[:64]


def add_series(data: Dataset, whose: Belongs) -> None:
    """The series."""
    data.SeriesInstanceUID = whose.series_uid
    data.Modality = "SM"
    data.SeriesNumber = whose.series_number
    if whose.series_name:
        data.SeriesDescription = whose.series_name[:64]


def add_all(data: Dataset, whose: Belongs, uid: str) -> None:
    """Make a data set one of its study; ``uid``: of the instance."""
    add_patient(data, whose)
    add_study(data, whose)
    add_series(data, whose)
    data.SOPInstanceUID = uid
