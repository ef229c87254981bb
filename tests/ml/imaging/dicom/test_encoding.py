"""Encoding of a slide's level as DICOM: geometry, colours, and no list of frames."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pydicom.dataelem import RawDataElement
from pydicom.dataset import Dataset
from pydicom.tag import Tag

from ml.imaging.dicom.encoding import Coding, SlideDescription, level_of, srgb_profile
from ml.imaging.dicom.uids import (
    instance_id,
    instance_number,
    series_of,
    uid_of,
    uuid_of,
)
from ml.imaging.dicom.writing import bulk_value, json_of
from ml.imaging.staining.dicom import stain_of
from ml.types import Level

SLIDE = uuid.UUID("12345678-1234-5678-9234-567812345678")


def _slide() -> SlideDescription:
    """A slide of 102,400 frames."""
    base, half = Level(81_920, 81_920, 1, 256, 256), Level(40_959, 40_960, 2, 256, 256)
    made = datetime(2026, 1, 31, 12, tzinfo=UTC)
    return SlideDescription(SLIDE, [base, half], (0.25, 0.5), "aperio", 40.0, made)


def test_a_hundred_thousand_frames_are_not_listed() -> None:
    data = level_of(_slide(), 1, Coding(is_rgb=False, ratio=20, icc_profile=b"p" * 100_000))
    assert data.NumberOfFrames == 102_400
    assert data.DimensionOrganizationType == "TILED_FULL"
    assert "PerFrameFunctionalGroupsSequence" not in data
    document = json_of(data, lambda name: f"https://x/{name}")
    assert len(json.dumps(document)) < 8_000
    address = document["00480105"]["Value"][0]["00282000"]["BulkDataURI"]
    assert bulk_value(data, address.rpartition("/")[2]) == b"p" * 100_000
    assert bulk_value(data, "0" * 32) is None


def test_wsidicom_places_the_entire_image_on_the_glass() -> None:
    from wsidicom.geometry import PointMm, RegionMm, SizeMm
    from wsidicom.metadata.schema.dicom.image import ImageCoordinateSystemDicomSchema

    data = level_of(_slide(), 1, Coding(is_rgb=False, ratio=20, icc_profile=None))
    placed = ImageCoordinateSystemDicomSchema().load(data)
    assert placed.rotation == 180
    width_mm, height_mm = data.ImagedVolumeWidth, data.ImagedVolumeHeight
    full_region = placed.image_to_slide(RegionMm(PointMm(0, 0), SizeMm(width_mm, height_mm)))
    far = (
        full_region.position.x + full_region.size.width,
        full_region.position.y + full_region.size.height,
    )
    assert (full_region.position.x, full_region.position.y) == pytest.approx((height_mm, width_mm))
    assert far == pytest.approx((0, 0))


def test_every_level_has_the_same_physical_size() -> None:
    for number in (1, 2):
        data = level_of(_slide(), number, Coding(is_rgb=True, ratio=10, icc_profile=None))
        (shared,) = data.SharedFunctionalGroupsSequence
        down_mm, across_mm = shared.PixelMeasuresSequence[0].PixelSpacing
        assert float(across_mm) * data.TotalPixelMatrixColumns == pytest.approx(20.48)
        assert float(down_mm) * data.TotalPixelMatrixRows == pytest.approx(40.96)
        assert (data.ImagedVolumeWidth, data.ImagedVolumeHeight) == pytest.approx((20.48, 40.96))
        assert data.PhotometricInterpretation == "RGB"
        assert data.OpticalPathSequence[0].ICCProfile == srgb_profile()


def test_the_stain_is_written_if_it_is_known() -> None:
    coding = Coding(is_rgb=False, ratio=20, icc_profile=None)
    assert stain_of(level_of(replace(_slide(), stain="H&E"), 1, coding)) == "H&E"
    (specimen,) = level_of(_slide(), 1, coding).SpecimenDescriptionSequence
    assert list(specimen.SpecimenPreparationSequence) == []


def test_uids_map_back_to_their_objects() -> None:
    assert uuid_of(uid_of(SLIDE)) == SLIDE
    for wrong in ("1.2.3", "2.25.", "2.25.-1", "2.25.01", "2.25." + "9" * 39, "2.25.1a", "2.25.٣"):
        assert uuid_of(wrong) is None
    uid = instance_id(SLIDE, 7)
    assert instance_number(SLIDE, uid) == 7 and SLIDE in series_of(uid)
    assert instance_number(SLIDE, SLIDE) is None
    assert instance_number(SLIDE, uuid.uuid4()) is None
    assert len(uid_of(uuid.UUID(int=2**128 - 1))) <= 64


def test_the_icc_profile_is_deterministic() -> None:
    first = srgb_profile()
    srgb_profile.cache_clear()
    assert srgb_profile() == first
    assert first[36:40] == b"acsp"


@pytest.mark.filterwarnings("ignore:Invalid value for VR IS")
def test_non_finite_numbers_are_null_and_damaged_values_left_out() -> None:
    data, inner = Dataset(), Dataset()
    data.ImagedVolumeWidth = float("nan")
    data.Rows = 7
    inner.ImagedVolumeHeight = float("inf")
    data.SharedFunctionalGroupsSequence = [inner]
    for word, kind, value in (
        ("ImagedVolumeDepth", "FL", b"abc"),
        ("NumberOfFrames", "IS", b"1e999 "),
    ):
        tag = Tag(word)
        data[tag] = RawDataElement(tag, kind, len(value), value, 0, False, True)
    document = json_of(data, str)
    assert json.loads(json.dumps(document, allow_nan=False)) == {
        "00480001": {"vr": "FL", "Value": [None]},
        "00280010": {"vr": "US", "Value": [7]},
        "52009229": {"vr": "SQ", "Value": [{"00480002": {"vr": "FL", "Value": [None]}}]},
    }
