"""Redaction of slides of each format: the text is gone from every level and every file, and the
label too; a template is found again by the scanner that the file names."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ml.imaging.phi_detection.text import read_text
from ml.imaging.results import PictureBox
from ml.imaging.slides.slide import open_slide
from portal.archive.inspection import preview_make
from portal.archive.models import Case, Slide, Upload
from portal.archive.selectors.redaction_templates import scope_of
from portal.archive.services.gate.quarantine import quarantine_redact
from portal.archive.storage import files as storage_files
from portal.labs.models import User
from tests.ml.imaging.deidentification.support import write_svs
from tests.ml.imaging.multi_file import SECRET, write_mrxs, write_vms, zipped
from tests.ml.imaging.phi_detection.support import named, tissue
from tests.ml.imaging.slide_files import images_beside, write_czi, write_dicom_series
from tests.ml.imaging.zarrs import ozx, write_ngff
from tests.portal.archive.support import run_job

pytestmark = pytest.mark.django_db

LINE = PictureBox(19 / 512, 12 / 256, 400 / 512, 48 / 256)
"""Around the text of ``named`` in a picture of 512 x 256 px."""
LABEL = named(tissue(480, 200), text="Jane Doe 12/03/1961")


def _dicom_file(folder: Path, pixels: Any) -> Path:
    return write_dicom_series(folder / "series", pixels) / "0.dcm"


def _dicom_series(folder: Path, pixels: Any) -> Path:
    return zipped(write_dicom_series(folder / "series", pixels, label=LABEL), folder / "a.zip")


def _zarr(folder: Path, pixels: Any) -> Path:
    root = write_ngff(folder / "a", np.moveaxis(pixels, 2, 0), within="0")
    write_ngff(folder / "label", np.moveaxis(LABEL, 2, 0), within="1")
    (folder / "label" / "1").rename(root / "1")
    return ozx(root, folder / "a.zip")


def _mrxs(folder: Path, pixels: Any) -> Path:
    write_mrxs(folder / "from", named=True, pixels=pixels)
    return zipped(folder / "from", folder / "a.zip")


def _vms(folder: Path, pixels: Any) -> Path:
    write_vms(folder / "from", named=True, pixels=pixels)
    return zipped(folder / "from", folder / "a.zip")


def _czi(folder: Path, pixels: Any) -> Path:
    return write_czi(folder / "a.czi", pixels, label=LABEL)


def _svs(folder: Path, pixels: Any) -> Path:
    return write_svs(folder / "a.svs", level=pixels)


FORMATS: dict[str, tuple[Callable[[Path, Any], Path], str, tuple[str, ...]]] = {
    "svs": (_svs, "Aperio Image Library v11.2.1", ("label", "macro")),
    "dicom": (_dicom_file, "Maker Scanner 7", ()),
    "dicom series": (_dicom_series, "Maker Scanner 7", ("label",)),
    "ome-zarr": (_zarr, "", ()),
    "mrxs": (_mrxs, "mirax", ("label", "macro")),
    "vms": (_vms, "hamamatsu", ("macro",)),
    "czi": (_czi, "zeiss", ("label",)),
}
"""Format of a test slide: its writer, the device in its metadata, and its associated images."""


@pytest.fixture(autouse=True)
def _rule_of_the_portal(settings: Any) -> None:
    settings.TESSERA_PHI_IN_PIXELS = "hold"


def words(image: Any) -> str:
    return " ".join(line.text for line in read_text(np.ascontiguousarray(image)))


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_a_slide_of_each_format_is_redacted_in_every_level_and_has_no_label(
    case: Case,
    receive: Any,
    manager: User,
    tmp_path: Path,
    storage: Path,
    quick: None,
    django_capture_on_commit_callbacks: Any,
    name: str,
) -> None:
    write, device, images = FORMATS[name]
    pixels = named(tissue(512, 256))
    source = write(tmp_path, pixels)
    arrived = hashlib.sha256(source.read_bytes()).hexdigest()
    run_job(receive(case, source, source.name).job)
    held = Upload.objects.get(state="quarantined")
    assert held.error_code == "phi-in-pixels", held.error_message
    scope = scope_of(held)
    assert scope is not None and scope.device == device
    shown = tmp_path / "shown"
    shown.mkdir()
    original = storage_files.asset_path(held.lab_id, held.asset.sha256)
    preview = preview_make(original, shown, image="", at=0.0)
    assert (preview.kind, preview.images) == ("slide", images)
    with django_capture_on_commit_callbacks(execute=True):
        job = run_job(quarantine_redact(upload=held, user=manager, boxes=[LINE]).job)
    assert job.state == "succeeded", job.error_message + job.traceback
    slide = Slide.objects.get()
    files = [path for path in storage.rglob("*") if path.is_file()]
    assert arrived not in {hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    for path in files:
        assert SECRET.encode() not in path.read_bytes(), path
    stored = storage_files.asset_path(slide.lab_id, slide.asset.sha256)
    assert images_beside(stored) == []
    with open_slide(stored) as after:
        assert (after.info.width_px, after.info.height_px) == (512, 256)
        for number, level in enumerate(after.stored):
            level_pixels = after.read_level(number, (0, 0), (level.width_px, level.height_px))
            assert words(level_pixels) == "", number
        level_pixels = after.read_level(0, (0, 0), (512, 256)).astype(int)
    assert level_pixels[16:48, 32:400].max() <= 8
    assert np.abs(level_pixels[80:] - pixels[80:]).mean() < 6, "the rest is as it was"
