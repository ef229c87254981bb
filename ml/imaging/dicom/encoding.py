"""Encoding of a slide's level as a VL Whole Slide Microscopy Image (DICOM PS3.3, A.32.8).

The frames are the level's tiles, row by row (TILED_FULL). Unknown attributes have the value that
the standard defines for it.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from PIL import ImageCms

from ml.imaging.dicom.uids import WHOLE_SLIDE, derived_uid, instance_id, uid_of
from ml.imaging.staining.dicom import preparation_of
from ml.types import Level

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

JPEG_BASELINE = "1.2.840.10008.1.2.4.50"
MAKER = "Tessera"
UNKNOWN = "unknown"
TIME_UNKNOWN = "19000101000000"
"""Value of required dates (type 1) that are unknown; the same dummy as in de-identified DICOM
files."""
SECTION_UM = 4.0
"""Thickness of a histological section: the depth is required (type 1), and no scanner writes it."""
_ORIENTATION = [0.0, -1.0, 0.0, -1.0, 0.0, 0.0]
"""Rows run along -y, columns along -x: as most scanners put a slide with its label on the left."""
_SCT, _DCM = "SCT", "DCM"
_ICC_DATE = slice(24, 36)  # of a profile's header: when it was made (ICC.1, 7.2.8)


@dataclass(frozen=True, slots=True)
class Coding:
    """Coding of a level's frames, always JPEG baseline.

    Attributes:
        is_rgb: Samples are stored as RGB, not as YCbCr.
        ratio: Compression ratio of pixels to frames, approximately.
        icc_profile: The file's profile, None if it has none.
    """

    is_rgb: bool
    ratio: float
    icc_profile: bytes | None


@dataclass(frozen=True, slots=True)
class SlideDescription:
    """Attributes of a slide that all of its levels share.

    Attributes:
        slide_id: Base of the UIDs of series, frame of reference and instances.
        mpp: Microns per pixel of level 0, (x, y).
        made_at: Time at which the portal received its pixels.
        stain: "" if unknown.
    """

    slide_id: uuid.UUID
    levels: Sequence[Level]
    mpp: tuple[float, float]
    vendor: str
    objective_power: float | None
    made_at: datetime
    stain: str = ""


def brief_of(slide: SlideDescription, number: int) -> Dataset:
    """Attributes of a level in search results; no file is read for them.

    Args:
        number: Number of the instance, from 1, finest level first.
    """
    from pydicom.dataset import Dataset

    level = slide.levels[number - 1]
    data = Dataset()
    data.SOPClassUID = WHOLE_SLIDE
    data.SOPInstanceUID = uid_of(instance_id(slide.slide_id, number))
    data.InstanceNumber = number
    data.Modality = "SM"
    data.ImageType = _image_type(number)
    data.NumberOfFrames = columns_of(level) * rows_of(level)
    data.Rows, data.Columns = level.tile_height_px, level.tile_width_px
    data.TotalPixelMatrixColumns = level.width_px
    data.TotalPixelMatrixRows = level.height_px
    data.BitsAllocated = 8
    return data


def level_of(slide: SlideDescription, number: int, coding: Coding) -> Dataset:
    """Complete data set of a level, without patient, study and pixels."""
    data = brief_of(slide, number)
    data.SpecificCharacterSet = "ISO_IR 192"
    _add_equipment(data, slide)
    _add_place(data, slide)
    _add_pixels(data, coding)
    _add_image(data, slide, number)
    _add_dimensions(data, slide)
    data.SharedFunctionalGroupsSequence = [_shared_groups(slide, number)]
    data.OpticalPathSequence = [_optical_path(slide, coding)]
    _add_specimen(data, slide)
    return data


def columns_of(level: Level) -> int:
    """Number of tiles in a row."""
    return -(-level.width_px // level.tile_width_px)


def rows_of(level: Level) -> int:
    """Number of tiles in a column."""
    return -(-level.height_px // level.tile_height_px)


@cache
def srgb_profile() -> bytes:
    """Profile for slides without one, as the standard requires one. Always the same bytes."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    profile[_ICC_DATE] = bytes([7, 208, 0, 1, 0, 1]) + bytes(6)  # the first of January 2000
    return bytes(profile)


def _image_type(number: int) -> list[str]:
    if number == 1:
        return ["ORIGINAL", "PRIMARY", "VOLUME", "NONE"]
    return ["DERIVED", "PRIMARY", "VOLUME", "RESAMPLED"]


def _add_equipment(data: Dataset, slide: SlideDescription) -> None:
    data.Manufacturer = slide.vendor.capitalize() or UNKNOWN
    data.ManufacturerModelName = data.DeviceSerialNumber = UNKNOWN
    data.SoftwareVersions = MAKER


def _add_place(data: Dataset, slide: SlideDescription) -> None:
    """Add the coordinates of the image in its slide's frame, all positive."""
    from pydicom.dataset import Dataset

    data.FrameOfReferenceUID = derived_uid(slide.slide_id, "frame of reference")
    data.PositionReferenceIndicator = "SLIDE_CORNER"
    base = slide.levels[0]
    data.ImagedVolumeWidth = base.width_px * slide.mpp[0] / 1000
    data.ImagedVolumeHeight = base.height_px * slide.mpp[1] / 1000
    data.ImagedVolumeDepth = SECTION_UM
    origin = Dataset()
    origin.XOffsetInSlideCoordinateSystem = _decimal(data.ImagedVolumeHeight)
    origin.YOffsetInSlideCoordinateSystem = _decimal(data.ImagedVolumeWidth)
    data.TotalPixelMatrixOriginSequence = [origin]
    data.ImageOrientationSlide = _ORIENTATION


def _add_pixels(data: Dataset, coding: Coding) -> None:
    data.SamplesPerPixel, data.PlanarConfiguration = 3, 0
    data.PhotometricInterpretation = "RGB" if coding.is_rgb else "YBR_FULL_422"
    data.BitsStored, data.HighBit, data.PixelRepresentation = 8, 7, 0
    data.LossyImageCompression = "01"
    data.LossyImageCompressionRatio = _decimal(coding.ratio)
    data.LossyImageCompressionMethod = "ISO_10918_1"


def _add_image(data: Dataset, slide: SlideDescription, number: int) -> None:
    data.ContentDate = slide.made_at.strftime("%Y%m%d")
    data.ContentTime = slide.made_at.strftime("%H%M%S")
    data.AcquisitionDateTime = TIME_UNKNOWN
    data.AcquisitionContextSequence = []
    data.VolumetricProperties = "VOLUME"
    # Of type 1. A level is the scan of the tissue: label and overview, which may show a name, are
    # other images and never exported. The tissue's own pixels are not searched for text.
    data.SpecimenLabelInImage = data.BurnedInAnnotation = "NO"
    data.FocusMethod, data.ExtendedDepthOfField = "AUTO", "NO"
    data.NumberOfOpticalPaths = data.TotalPixelMatrixFocalPlanes = 1
    if number > 1:
        data.DerivationDescription = "Made smaller"


def _add_dimensions(data: Dataset, slide: SlideDescription) -> None:
    from pydicom.datadict import tag_for_keyword
    from pydicom.dataset import Dataset
    from pydicom.tag import Tag

    uid = derived_uid(slide.slide_id, "dimensions")
    organization = Dataset()
    organization.DimensionOrganizationUID = uid
    data.DimensionOrganizationType = "TILED_FULL"
    data.DimensionOrganizationSequence = [organization]
    indexes = []
    for word in ("RowPositionInTotalImagePixelMatrix", "ColumnPositionInTotalImagePixelMatrix"):
        index = Dataset()
        index.DimensionOrganizationUID = uid
        index.DimensionIndexPointer = Tag(tag_for_keyword(word) or 0)
        index.FunctionalGroupPointer = Tag(tag_for_keyword("PlanePositionSlideSequence") or 0)
        indexes.append(index)
    data.DimensionIndexSequence = indexes


def _shared_groups(slide: SlideDescription, number: int) -> Dataset:
    """Functional groups that are the same for all frames."""
    from pydicom.dataset import Dataset

    base, level = slide.levels[0], slide.levels[number - 1]
    measures, frame_type, path, shared = Dataset(), Dataset(), Dataset(), Dataset()
    across_mm = slide.mpp[0] * base.width_px / level.width_px / 1000
    down_mm = slide.mpp[1] * base.height_px / level.height_px / 1000
    measures.SliceThickness = _decimal(SECTION_UM / 1000)
    measures.PixelSpacing = [_decimal(down_mm), _decimal(across_mm)]
    frame_type.FrameType = _image_type(number)
    path.OpticalPathIdentifier = "1"
    shared.PixelMeasuresSequence = [measures]
    shared.WholeSlideMicroscopyImageFrameTypeSequence = [frame_type]
    shared.OpticalPathIdentificationSequence = [path]
    return shared


def _optical_path(slide: SlideDescription, coding: Coding) -> Dataset:
    from pydicom.dataset import Dataset

    path = Dataset()
    path.OpticalPathIdentifier = "1"
    path.IlluminationTypeCodeSequence = [_code("111744", _DCM, "Brightfield illumination")]
    path.IlluminationColorCodeSequence = [_code("414298005", _SCT, "Full Spectrum")]
    path.ICCProfile = coding.icc_profile or srgb_profile()
    if coding.icc_profile is None:
        path.ColorSpace = "SRGB"
    if slide.objective_power:
        path.ObjectiveLensPower = _decimal(slide.objective_power)
    return path


def _add_specimen(data: Dataset, slide: SlideDescription) -> None:
    from pydicom.dataset import Dataset

    data.ContainerIdentifier = str(slide.slide_id)
    data.IssuerOfTheContainerIdentifierSequence = []
    data.ContainerTypeCodeSequence = [_code("433466003", _SCT, "Microscope slide")]
    specimen = Dataset()
    specimen.SpecimenIdentifier = str(slide.slide_id)
    specimen.SpecimenUID = derived_uid(slide.slide_id, "specimen")
    specimen.IssuerOfTheSpecimenIdentifierSequence = []
    specimen.SpecimenPreparationSequence = (
        preparation_of(slide.stain, str(slide.slide_id)) if slide.stain else []
    )
    data.SpecimenDescriptionSequence = [specimen]


def _code(value: str, scheme: str, meaning: str) -> Dataset:
    from pydicom.dataset import Dataset

    code = Dataset()
    code.CodeValue, code.CodingSchemeDesignator, code.CodeMeaning = value, scheme, meaning
    return code


def _decimal(value: float) -> Any:
    """A number as DICOM's decimal strings hold it: 16 characters."""
    from pydicom.valuerep import DSfloat

    return DSfloat(value, auto_format=True)
