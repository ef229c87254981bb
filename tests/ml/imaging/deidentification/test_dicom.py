"""DICOM slides: the basic profile, and pixels as they were."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from pydicom import dcmread
from pydicom.datadict import dictionary_VR, tag_for_keyword
from pydicom.dataset import Dataset

from ml.errors import CorruptFileError, UnsupportedFormatError
from ml.imaging.deidentification.dicom import _clean, clean_dicom, uid_hashed
from ml.imaging.deidentification.result import DeidentificationResult
from tests.ml.imaging.deidentification.support import KEY, SECRET, clean, write_dicom

PROFILE = """
AcquisitionComments AcquisitionContextSequence AcquisitionDate
AcquisitionDeviceProcessingDescription
AcquisitionProtocolDescription AcquisitionTime ActualHumanPerformersSequence
AdditionalPatientHistory
AdmissionID AdmittingDate AdmittingDiagnosesCodeSequence AdmittingDiagnosesDescription AdmittingTime
Allergies Arbitrary AuthorObserverSequence BranchOfService CassetteID
CommentsOnThePerformedProcedureStep ConfidentialityConstraintOnPatientDataDescription
ContentCreatorName ContentSequence ContrastBolusAgent ContributionDescription CountryOfResidence
CurrentPatientLocation CustodialOrganizationSequence DataSetTrailingPadding DerivationDescription
DetectorID DigitalSignaturesSequence DischargeDiagnosisDescription DistributionAddress
DistributionName EthnicGroup FillerOrderNumberImagingServiceRequest FrameComments GantryID
GeneratorID GraphicAnnotationSequence HumanPerformerName HumanPerformerOrganization
IconImageSequence IdentifyingComments ImageComments ImagePresentationComments
ImagingServiceRequestComments Impressions InstanceCreationDate InstanceCreationTime
InstanceCreatorUID InstitutionAddress InstitutionalDepartmentName InstitutionCodeSequence
InstitutionName InsurancePlanIdentification IntendedRecipientsOfResultsIdentificationSequence
InterpretationApproverSequence InterpretationAuthor InterpretationDiagnosisDescription
InterpretationIDIssuer InterpretationRecorder InterpretationText InterpretationTranscriber
IssuerOfAdmissionID IssuerOfPatientID LastMenstrualDate MedicalAlerts MedicalRecordLocator
MilitaryRank ModifiedAttributesSequence ModifyingDeviceID NameOfPhysiciansReadingStudy
NamesOfIntendedRecipientsOfResults Occupation OperatorIdentificationSequence OperatorsName
OriginalAttributesSequence OrderCallbackPhoneNumber OrderEnteredBy OrderEntererLocation
OtherPatientIDs OtherPatientIDsSequence OtherPatientNames ParticipantSequence PatientAddress
PatientAge PatientBirthName PatientBirthTime PatientComments PatientInstitutionResidence
PatientInsurancePlanCodeSequence PatientMotherBirthName PatientPrimaryLanguageCodeSequence
PatientReligiousPreference PatientSize PatientState PatientTelephoneNumbers
PatientTransportArrangements PatientWeight PerformedLocation PerformedProcedureStepDescription
PerformedProcedureStepID PerformedProcedureStepStartDate PerformedStationAETitle
PerformedStationName PerformingPhysicianName PersonAddress PersonIdentificationCodeSequence
PersonName PersonTelephoneNumbers PhysiciansOfRecord PhysiciansReadingStudyIdentificationSequence
PlacerOrderNumberImagingServiceRequest PlateID PregnancyStatus PreMedication ProtocolName
ReasonForTheImagingServiceRequest ReasonForStudy ReferencedDigitalSignatureSequence
ReferencedPatientAliasSequence ReferencedPatientSequence ReferringPhysicianAddress
ReferringPhysicianIdentificationSequence ReferringPhysicianTelephoneNumbers RegionOfResidence
RequestAttributesSequence RequestedContrastAgent RequestedProcedureComments
RequestedProcedureDescription RequestedProcedureID RequestedProcedureLocation RequestingPhysician
RequestingService ResponsibleOrganization ResponsiblePerson ResultsComments ReviewerName
ScheduledHumanPerformersSequence ScheduledPerformingPhysicianName
ScheduledProcedureStepDescription ScheduledStationName SeriesDate SeriesDescription SeriesTime
ServiceEpisodeDescription ServiceEpisodeID SmokingStatus SourceImageSequence SpecialNeeds
SpecimenAccessionNumber SpecimenDetailedDescription SpecimenPreparationSequence
SpecimenShortDescription StationName StudyComments StudyDescription StudyIDIssuer TextComments
TextString TimezoneOffsetFromUTC TopicAuthor TopicKeywords TopicSubject TopicTitle
TransducerData VerifyingObserverName VerifyingObserverSequence VerifyingOrganization VisitComments
AnnotationGroupLabel DeviceDescription LongDeviceDescription DeviceLabel LensMake LensModel
UDISequence DeviceSettingDescription SlideIdentifier IssuerOfTheContainerIdentifierSequence
IssuerOfTheSpecimenIdentifierSequence SpecimenDescriptionSequenceTrial ContributingEquipmentSequence
"""
"""Attributes of PS3.15, table E.1-1, with the action X (alone or with Z or D): a slide may lose
all of them."""


def test_a_slide_contains_no_names_and_equal_pixels(tmp_path: Path) -> None:
    source = write_dicom(tmp_path / "a.dcm")
    made, cleaned = clean(source, tmp_path / "out")
    assert made is not None
    raw = made.read_bytes()
    assert SECRET.encode() not in raw
    assert b"2020" not in raw
    before, after = dcmread(source), dcmread(made)
    assert after.PixelData == before.PixelData
    assert (after.Rows, after.NumberOfFrames, after.Manufacturer) == (4, 2, "Maker")
    assert after.PatientIdentityRemoved == "YES"
    assert after.DeidentificationMethodCodeSequence[0].CodeValue == "113100"
    assert (after.PatientName, after.PatientSex, after.AccessionNumber) == ("", "", "")
    assert after.ContainerIdentifier != after.PatientID != ""
    assert after.SpecimenDescriptionSequence[0].SpecimenUID.startswith("2.25.")
    assert after.SOPClassUID == before.SOPClassUID
    assert after.file_meta.MediaStorageSOPInstanceUID == after.SOPInstanceUID
    assert {"PatientName", "StudyInstanceUID", "private attributes"} <= set(cleaned.removed)


def test_objects_of_one_study_have_equal_study_uids(tmp_path: Path) -> None:
    first, _ = clean(write_dicom(tmp_path / "a.dcm"), tmp_path / "x")
    second, _ = clean(write_dicom(tmp_path / "b.dcm", image_type="THUMBNAIL"), tmp_path / "y")
    assert first is not None
    assert second is not None
    item, other = dcmread(first), dcmread(second)
    assert item.StudyInstanceUID == other.StudyInstanceUID
    assert (item.PatientID, item.SOPInstanceUID == other.SOPInstanceUID) == (other.PatientID, False)
    assert uid_hashed("1.2.3", b"a") != uid_hashed("1.2.3", b"b")
    assert len(uid_hashed("1.2.3", b"a")) <= 64


def test_every_attribute_of_the_profile_is_removed() -> None:
    left = [word for word in PROFILE.split() if (tag := tag_for_keyword(word)) and _stays(tag)]
    assert left == []


def _stays(tag: int) -> bool:
    kind, data, inner = dictionary_VR(tag), Dataset(), Dataset()
    inner.CodeValue = SECRET
    values = {"SQ": [inner], "US": 3, "OB": b"ab", "UI": "1.2.3", "DA": "20200101"}
    data.add_new(tag, kind, values.get(kind, "1"))
    _clean(data, DeidentificationResult(), bytes.fromhex(KEY))
    return tag in data and not str(data[tag].value).startswith("2.25.")


def test_a_label_is_not_a_slide(tmp_path: Path) -> None:
    source = write_dicom(tmp_path / "l.dcm", image_type="LABEL")
    with pytest.raises(UnsupportedFormatError, match="label"):
        clean_dicom(source, tmp_path / "out.dcm", DeidentificationResult(), key=b"k")


def test_label_macro_and_file_names_are_removed_from_a_series(tmp_path: Path) -> None:
    path = tmp_path / "s.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for kind in ("VOLUME", "LABEL", "OVERVIEW"):
            archive.write(write_dicom(tmp_path / f"{kind}.dcm", image_type=kind), f"{SECRET}{kind}")
        archive.writestr("notes.txt", SECRET)
    made, cleaned = clean(path, tmp_path / "out")
    assert made is not None
    assert {"label image", "macro image", "names of files"} <= set(cleaned.removed)
    with zipfile.ZipFile(made) as archive:
        assert archive.namelist() == ["0001.dcm"]
    assert SECRET.encode() not in made.read_bytes()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"\x08\0\x30\x10LO", b"\x08\0\x30\x10ZZ"),  # a kind of value that there is not
        (b"\x08\0\x60\0CS\x02\0SM", b"\x08\0\x60\0UL\x02\0SM"),  # half a number
        (b"\x08\0\x60\0CS\x02\0SM", b"\x08\0\x60\0SQ\x02\0SM"),  # a text as a sequence
    ],
)
def test_an_invalid_value_raises_a_corrupt_file_error(
    tmp_path: Path, before: bytes, after: bytes
) -> None:
    """pydicom converts a value only on access."""
    path = write_dicom(tmp_path / "a.dcm")
    data = path.read_bytes()
    assert data.count(before) == 1
    path.write_bytes(data.replace(before, after))
    with pytest.raises(CorruptFileError, match=r"damaged|no pixels"):
        clean(path, tmp_path / "out")


@pytest.mark.parametrize(
    ("tag", "kind"),
    [
        *((0x00204000, kind) for kind in ("CS", "OW", "OV", "UI")),  # ImageComments
        (0x00081110, "OW"),  # ReferencedStudySequence
        (0x7FE00001, "UT"),  # ExtendedOffsetTable
        (0x00280106, "LO"),  # SmallestImagePixelValue
        (0x00091001, "CS"),
        (0x00080999, "CS"),  # no attribute of the standard
    ],
)
def test_a_value_of_another_type_than_its_attribute_is_removed(
    tmp_path: Path, tag: int, kind: str
) -> None:
    path = write_dicom(tmp_path / "a.dcm")
    data = dcmread(path)
    name = "DOE JANE"
    data.add_new(tag, kind, name.encode() if kind in ("OW", "OV") else name)
    data.save_as(path)
    assert name.encode() in path.read_bytes()
    made, cleaned = clean(path, tmp_path / "out")
    assert made is not None
    assert name.encode() not in made.read_bytes()
    assert cleaned.removed
    assert dcmread(made).PixelData == data.PixelData
