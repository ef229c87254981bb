"""Files that name a patient, made by hand: an Aperio slide, a DICOM slide, an MP4."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import tifffile

from ml.imaging.deidentification import multi_file
from ml.imaging.deidentification.result import CLEAN_NAME, DeidentificationResult
from ml.imaging.deidentification.single_file import deidentify
from tests.ml.imaging.multi_file import picture

SECRET = "DoeJane"
KEY = "00" * 32
VIDEO_CLASS = "1.2.840.10008.5.1.4.1.1.77.1.1.1"
"""Video Endoscopic Image Storage."""
MPEG2, AVC, HEVC = (f"1.2.840.10008.1.2.4.{number}" for number in (100, 102, 107))
AVC_FRAGMENTABLE = f"{AVC}.1"


def clean(path: Path, folder: Path) -> tuple[Path | None, DeidentificationResult]:
    """Run ``deidentify`` on a file and return the copy, if there is one."""
    folder.mkdir(exist_ok=True)
    arguments = {"path": str(path), "out_dir": str(folder)}
    if path.suffix in (".dcm", ".zip"):
        cleaned = DeidentificationResult(**multi_file.deidentify(key=KEY, **arguments))
    else:
        cleaned = DeidentificationResult(**deidentify(**arguments))
    made = folder / CLEAN_NAME
    return (made if made.exists() else None), cleaned


def write_svs(path: Path, *, bigtiff: bool = False, level: Any = None) -> Path:
    """Write an SVS like Aperio: level, thumbnail, label, macro, names in descriptions."""
    pixels = picture() if level is None else level
    height, width = pixels.shape[:2]
    head = f"Aperio Image Library v11.2.1\r\n{width}x{height} (128x128) JPEG/RGB Q=90"
    fields = f"|AppMag = 20|MPP = 0.5|Filename = {SECRET}|User = {SECRET}|Date = 12/29/09|Title = x"
    options: dict[str, Any] = {"compression": "jpeg", "photometric": "rgb", "metadata": None}
    with tifffile.TiffWriter(path, bigtiff=bigtiff) as tiff:
        tiff.write(
            pixels,
            tile=(128, 128),
            description=head + fields,
            datetime="2009:12:29 09:59:15",
            extratags=[(315, 2, 0, SECRET, True)],
            **options,
        )
        tiff.write(pixels[::4, ::4], description=head + fields, **options)
        tiff.write(
            np.full((40, 30, 3), 7, np.uint8),
            description=f"Aperio Image Library v11.2.1\r\nlabel 30x40|User = {SECRET}",
            subfiletype=1,
            photometric="rgb",
            metadata=None,
        )
        tiff.write(
            pixels[::4, ::2],
            description="Aperio Image Library v11.2.1\r\nmacro 60x40",
            subfiletype=9,
            **options,
        )
    return path


def write_dicom(path: Path, *, image_type: str = "VOLUME", patient: str = SECRET) -> Path:
    """A slide of 2 x 1 native tiles with what names a patient in many places."""
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.uid import ExplicitVRLittleEndian

    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = "1.2.840.10008.5.1.4.1.1.77.1.6"
    meta.MediaStorageSOPInstanceUID = f"1.2.3.{len(image_type)}"
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    meta.SourceApplicationEntityTitle = patient
    data = Dataset()
    data.file_meta = meta
    data.SOPClassUID, data.SOPInstanceUID = (
        meta.MediaStorageSOPClassUID,
        meta.MediaStorageSOPInstanceUID,
    )
    data.StudyInstanceUID, data.SeriesInstanceUID = "1.2.3.100", "1.2.3.101"
    data.PatientName, data.PatientID, data.PatientAge = f"{patient}^A", f"{patient}-1", "055Y"
    data.PatientBirthDate, data.PatientSex, data.PatientWeight = "19500101", "F", "60"
    data.AccessionNumber, data.StudyDate, data.InstitutionName = patient, "20200101", patient
    data.OperatorsName, data.StationName, data.StudyDescription = patient, patient, patient
    data.ImageComments, data.DeviceSerialNumber = patient, f"{patient}7"
    data.AcquisitionDateTime, data.ContentDate = "20200101120000", "20200101"
    data.ContainerIdentifier, data.Modality = f"{patient}-A1", "SM"
    data.Manufacturer, data.ImageType = "Maker", ["ORIGINAL", "PRIMARY", image_type, "NONE"]
    request, specimen, step = Dataset(), Dataset(), Dataset()
    request.RequestedProcedureDescription = patient
    data.RequestAttributesSequence = [request]
    specimen.SpecimenIdentifier, specimen.SpecimenUID = f"{patient}-A1", "1.2.3.200"
    step.TextValue = patient
    specimen.SpecimenPreparationSequence = [step]
    data.SpecimenDescriptionSequence = [specimen]
    block = data.private_block(0x0099, patient, create=True)
    block.add_new(1, "LO", patient)
    data.Rows = data.Columns = 4
    data.SamplesPerPixel, data.PhotometricInterpretation = 1, "MONOCHROME2"
    data.BitsAllocated = data.BitsStored = 8
    data.HighBit, data.PixelRepresentation, data.NumberOfFrames = 7, 0, 2
    data.PixelData = bytes(range(32))
    data.DataSetTrailingPadding = patient.encode() + b"\0"
    data.save_as(path, enforce_file_format=True)
    return path


def write_dicom_video(path: Path, video: Path, syntax: str, *, fragments: int = 1) -> Path:
    """An object of an endoscopic video, with names; the stream as it is, in so many fragments."""
    from pydicom import dcmread
    from pydicom.encaps import encapsulate, itemize_fragment
    from pydicom.uid import UID

    data = dcmread(write_dicom(path))
    data.file_meta.MediaStorageSOPClassUID = data.SOPClassUID = VIDEO_CLASS
    data.file_meta.TransferSyntaxUID = UID(syntax)
    data.Modality, data.FrameTime, data.CineRate = "ES", "40", "25"
    stream = video.read_bytes()
    stream += b"\0" * (len(stream) % 2)
    size = -(-len(stream) // fragments) // 2 * 2 + 2
    parts = [stream[at : at + size] for at in range(0, len(stream), size)]
    data.PixelData = encapsulate([b"\0\0"], has_bot=False)[:8] + b"".join(
        itemize_fragment(part) for part in parts
    )
    data["PixelData"].VR, data["PixelData"].is_undefined_length = "OB", True
    data.save_as(path, enforce_file_format=True)
    return path


def write_sparse(path: Path, count: int, *, is_open: bool) -> Path:
    """``write_dicom`` with ``count`` frames, each with its position and a name.

    Args:
        is_open: by sequences of no stated length.
    """
    from pydicom import dcmread
    from pydicom.dataset import Dataset
    from pydicom.filebase import DicomBytesIO
    from pydicom.filewriter import write_sequence_item

    data = dcmread(write_dicom(path))
    data.NumberOfFrames, data.PixelData = count, bytes(16 * count)
    data.DimensionOrganizationType = "TILED_SPARSE"
    data.PerFrameFunctionalGroupsSequence = []
    data.ExtendedOffsetTable = bytes(8)  # follows the functional groups of frames
    data.save_as(path, enforce_file_format=True)
    group, content, place = Dataset(), Dataset(), Dataset()
    content.FrameComments, content.DimensionIndexValues = SECRET, [1, 1]
    place.ColumnPositionInTotalImagePixelMatrix = 5
    group.FrameContentSequence, group.PlanePositionSlideSequence = [content], [place]
    for item in (group, content, place):
        item.is_undefined_length_sequence_item = is_open
    for element in group:
        element.is_undefined_length = is_open
    part = DicomBytesIO()
    part.is_little_endian, part.is_implicit_VR = True, False
    write_sequence_item(part, group, ["iso8859"])
    body = part.getvalue() * count
    head, end = struct.pack("<HH2sH", 0x5200, 0x9230, b"SQ", 0), b"\xfe\xff\xdd\xe0\0\0\0\0"
    sequence = struct.pack("<I", 0xFFFFFFFF if is_open else len(body)) + body + end * is_open
    raw = path.read_bytes()
    assert raw.count(head + bytes(4)) == 1
    path.write_bytes(raw.replace(head + bytes(4), head + sequence))
    return path
