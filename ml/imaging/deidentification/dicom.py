"""DICOM de-identification: removes patient, people, places, dates and private attributes, hashes
UIDs.

Removes at least what the Basic Application Level Confidentiality Profile requires (DICOM PS3.15,
annex E), by an allow list: of texts, dates and binary values only those named here stay, of
sequences only those that describe pixels and optics. Attributes that readers require get a dummy
value. The pixel data are unchanged. Functional groups are read, cleaned and written frame by frame.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from pathlib import Path
from typing import BinaryIO

from pydicom import dcmwrite
from pydicom.datadict import dictionary_VR
from pydicom.dataelem import DataElement
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.filebase import DicomBytesIO
from pydicom.filewriter import write_dataset, write_sequence_item
from pydicom.uid import UID, DeflatedExplicitVRLittleEndian, ExplicitVRBigEndian

from ml.errors import CorruptFileError, TooLargeError, UnsupportedFormatError
from ml.imaging.deidentification.result import DeidentificationResult
from ml.imaging.formats.dicom_items import ITEM_HEAD, UNDEFINED, fragment_bytes
from ml.imaging.formats.frame_groups import (
    PER_FRAME,
    copy_bytes,
    encoding_of,
    has_groups,
    iter_groups,
    pydicom_errors_as_corrupt,
    read_head,
    read_rest,
)
from ml.imaging.staining.dicom import stain_of

_STANDARD_ROOT = "1.2.840.10008."
_UUID_ROOT = "2.25."
_TEXTS = frozenset(
    {"AE", "AS", "DA", "DT", "LO", "LT", "OB", "OD", "OF", "OL", "PN", "SH", "ST", "TM", "UC"}
    | {"UN", "UR", "UT", "OB or OW"}
)
"""Value representations that may identify somebody; numbers, codes (CS) and tags stay."""
_PERSONAL = frozenset({"DA", "LO", "LT", "PN", "SH", "ST", "UC", "UT"})
"""Value representations whose values may also be written in the pixels."""
_NUMBERS = ("US", "SS", "UL", "SL", "UV", "SV", "FL", "FD")
"""Value representations that programs mistake for each other."""
_ALLOWED = frozenset(
    {
        "Manufacturer", "ManufacturerModelName", "SoftwareVersions", "ICCProfile",
        "CodeValue", "LongCodeValue", "CodingSchemeDesignator", "CodingSchemeVersion",
        "CodeMeaning", "OpticalPathIdentifier", "PositionReferenceIndicator",
    }
)  # fmt: skip
_ALLOWED_SEQUENCES = frozenset(
    {
        "SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence",
        "DimensionOrganizationSequence", "DimensionIndexSequence", "OpticalPathSequence",
        "TotalPixelMatrixOriginSequence", "SpecimenDescriptionSequence",
        "ContainerTypeCodeSequence", "PixelMeasuresSequence", "FrameContentSequence",
        "PlanePositionSlideSequence", "OpticalPathIdentificationSequence",
        "WholeSlideMicroscopyImageFrameTypeSequence", "ImageCenterPointCoordinatesSequence",
        "IlluminationTypeCodeSequence", "IlluminationColorCodeSequence", "LensesCodeSequence",
        "ChannelDescriptionCodeSequence", "SpecimenTypeCodeSequence",
        "PrimaryAnatomicStructureSequence", "AnatomicRegionSequence",
        "PaletteColorLookupTableSequence", "PixelValueTransformationSequence",
        "RealWorldValueMappingSequence", "MeasurementUnitsCodeSequence", "FrameVOILUTSequence",
    }
)  # fmt: skip
_GROUPS = (0x0010, 0x0012, 0x0032, 0x0038, 0x0400, 0x4008)
"""Patient, trial, request, visit, signatures, results: always removed."""
_DUMMIES = {
    "ContentDate": "19000101",
    "ContentTime": "000000",
    "AcquisitionDateTime": "19000101000000",
    "StudyDate": "",
    "StudyTime": "",
    "AccessionNumber": "",
    "ReferringPhysicianName": "",
    "StudyID": "",
    "PatientName": "",
    "PatientBirthDate": "",
    "PatientSex": "",
}
"""Attributes of type 1 and 2, which are required: the profile's actions D and Z."""
_HASHED = ("PatientID", "ContainerIdentifier", "SpecimenIdentifier", "DeviceSerialNumber")
"""Pseudonyms: the same under the same key, so that objects of one patient stay linked."""
_SENDERS = (
    "SourceApplicationEntityTitle",
    "SendingApplicationEntityTitle",
    "ReceivingApplicationEntityTitle",
    "PrivateInformationCreatorUID",
    "PrivateInformation",
)
"""Attributes of the file meta information that name a sender."""
_PROFILE = ("113100", "DCM", "Basic Application Confidentiality Profile")
_SECONDARY = {"LABEL": "label", "OVERVIEW": "macro"}


class SecondaryImageError(UnsupportedFormatError):
    """The object is a label or an overview, not an image of the scanned tissue."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the DICOM object is the {name} image of a slide; send the object of the slide itself"
        )
        self.name = name


def clean_dicom(source: Path, target: Path, cleaned: DeidentificationResult, *, key: bytes) -> None:
    """Write a cleaned copy of an object with unchanged pixel data.

    Raises:
        SecondaryImageError: The object is a label or an overview.
        CorruptFileError, UnsupportedFormatError: It cannot be read, or is deflated.
        TooLargeError: It has more attributes than any slide, or over 4 GiB of functional groups.
    """
    with source.open("rb") as file, pydicom_errors_as_corrupt():
        data, meta = _read(file)
        for word in data.get("ImageType") or ():
            if word in _SECONDARY:
                raise SecondaryImageError(_SECONDARY[word])
        cleaned.stain = cleaned.stain or stain_of(data)
        _clean(data, cleaned, key)
        _declare(data)
        meta.MediaStorageSOPInstanceUID = data.SOPInstanceUID
        for word in _SENDERS:
            if word in meta:
                del meta[word]
        data.file_meta = meta
        data.preamble = b"\0" * 128  # of PS3.10; may hold a TIFF
        dcmwrite(target, data, enforce_file_format=True)
        is_implicit = bool(meta.TransferSyntaxUID.is_implicit_VR)
        with target.open("r+b") as out:
            out.seek(0, 2)
            if has_groups(file):
                _copy_groups(file, out, data, cleaned, key)
            _copy_pixels(file, out, implicit=is_implicit)


def uid_hashed(uid: str, key: bytes) -> str:
    """Hash a UID under the root for UUIDs, reproducibly for a key; standard UIDs stay."""
    if not uid or uid.startswith(_STANDARD_ROOT):
        return uid
    digest = hmac.new(key, f"uid:{uid}".encode(), hashlib.sha256).digest()
    return f"{_UUID_ROOT}{int.from_bytes(digest[:16], 'big')}"


def _read(file: BinaryIO) -> tuple[Dataset, FileMetaDataset]:
    data = read_head(file)
    meta = data.file_meta
    syntax = meta.get("TransferSyntaxUID")
    if syntax is None or "SOPInstanceUID" not in data:
        raise CorruptFileError("the DICOM object is truncated or damaged")
    if syntax in (DeflatedExplicitVRLittleEndian, ExplicitVRBigEndian):
        raise UnsupportedFormatError(
            "the DICOM object is deflated or big-endian; expected a little-endian transfer syntax"
        )
    return data, meta


def _clean(data: Dataset, cleaned: DeidentificationResult, key: bytes) -> None:
    for element in list(data):
        word = element.keyword
        if word in _DUMMIES:
            _replace(element, _DUMMIES[word], cleaned)
        elif word in _HASHED:
            if element.value:
                text = f"{word}:{element.value}".encode()
                _replace(element, hmac.new(key, text, hashlib.sha256).hexdigest()[:16], cleaned)
        elif _is_removed(element):
            if element.value not in (None, "", b"", []):
                name = "private attributes" if element.tag.is_private else word or "unknown"
                cleaned.add_removed(name, str(element.value) if element.VR in _PERSONAL else "")
            del data[element.tag]
        elif element.VR == "SQ":
            for item in element.value:
                _clean(item, cleaned, key)
        elif element.VR == "UI":
            _hash_uids(element, cleaned, key)


def _is_removed(element: DataElement) -> bool:
    tag, word = element.tag, element.keyword
    if tag.is_private or tag.group in _GROUPS or tag.group & 0xFF00 in (0x5000, 0x6000):
        return True  # curves and overlays as well
    if word == "ModifyingDeviceID" or not _has_standard_vr(element):
        return True  # a code by its type, a device by its meaning
    if element.VR == "SQ":
        return word not in _ALLOWED_SEQUENCES
    if word.endswith(("LookupTableData", "OffsetTable", "OffsetTableLengths")):
        return False
    return element.VR in _TEXTS and word not in _ALLOWED


def _has_standard_vr(element: DataElement) -> bool:
    """Return whether the standard defines the attribute with the file's value representation."""
    if element.tag.element == 0:  # the length of a group, which is not written
        return True
    standard_vr = dictionary_VR(element.tag) if element.keyword else ""
    return bool(standard_vr) and element.VR in {*_NUMBERS, standard_vr, *standard_vr.split(" or ")}


def _replace(element: DataElement, value: str, cleaned: DeidentificationResult) -> None:
    if element.value and str(element.value) != value:
        cleaned.add_removed(element.keyword, str(element.value) if element.VR in _PERSONAL else "")
    element.value = value


def _hash_uids(element: DataElement, cleaned: DeidentificationResult, key: bytes) -> None:
    several = element.VM > 1
    before = [str(uid) for uid in (element.value if several else [element.value or ""])]
    after = [UID(uid_hashed(uid, key)) for uid in before]
    if after != before:
        cleaned.add_removed(element.keyword or "UID")
    element.value = after if several else after[0]


def _declare(data: Dataset) -> None:
    """Add the attributes that declare the de-identification and its profile."""
    code = Dataset()
    code.CodeValue, code.CodingSchemeDesignator, code.CodeMeaning = _PROFILE
    for word in ("PatientName", "PatientID", "PatientBirthDate", "PatientSex"):
        if word not in data:
            setattr(data, word, "")
    data.PatientIdentityRemoved = "YES"
    data.DeidentificationMethod = "Basic Application Confidentiality Profile"
    data.DeidentificationMethodCodeSequence = [code]
    data.LongitudinalTemporalInformationModified = "REMOVED"


def _copy_groups(
    file: BinaryIO, out: BinaryIO, data: Dataset, cleaned: DeidentificationResult, key: bytes
) -> None:
    """Copy the functional groups of each frame and the attributes up to the pixels, cleaned."""
    is_implicit, encoding = bool(data.file_meta.TransferSyntaxUID.is_implicit_VR), encoding_of(data)
    head = struct.pack("<HH", PER_FRAME >> 16, PER_FRAME & 0xFFFF)
    out.write(head + (b"" if is_implicit else b"SQ\0\0") + bytes(4))
    start, frames = out.tell(), int(data.get("NumberOfFrames") or 1)
    for group in iter_groups(file, is_implicit=is_implicit, encoding=encoding, frames=frames):
        _clean(group, cleaned, key)
        part = _little_endian(is_implicit)
        write_sequence_item(part, group, encoding)
        out.write(part.getvalue())
    end = out.tell()
    if end - start >= UNDEFINED:
        raise TooLargeError("the DICOM object describes its frames in more than 4 GiB")
    out.seek(start - 4)
    out.write(struct.pack("<I", end - start))
    out.seek(end)
    after_frames = read_rest(file, is_implicit=is_implicit, encoding=encoding)
    _clean(after_frames, cleaned, key)
    part = _little_endian(is_implicit)
    write_dataset(part, after_frames, encoding)
    out.write(part.getvalue())


def _little_endian(is_implicit: bool) -> DicomBytesIO:
    buffer = DicomBytesIO()
    buffer.is_little_endian, buffer.is_implicit_VR = True, is_implicit
    return buffer


def _copy_pixels(file: BinaryIO, out: BinaryIO, *, implicit: bool) -> None:
    """Copy the element of pixel data without what follows it (padding, signatures)."""
    head = file.read(8 if implicit else 12)
    if len(head) < (8 if implicit else 12):
        raise CorruptFileError("the DICOM object holds no pixels")
    out.write(head)
    length = struct.unpack("<I", head[-4:])[0]
    if length != UNDEFINED:
        copy_bytes(file, out, length)
        return
    while True:
        item = file.read(ITEM_HEAD.size)
        size = fragment_bytes(item, damage="the DICOM object is truncated or damaged in its pixels")
        out.write(item)
        if size is None:
            return
        copy_bytes(file, out, size)
