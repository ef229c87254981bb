"""Canvases to draw on, without files."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ml.imaging.videos.frame_table_file import save_frame_table
from ml.types import FrameTable
from portal.annotations.models import Label, Roi
from portal.annotations.services.labels import label_set_ensure
from portal.annotations.services.rois import roi_create
from portal.archive.models import Asset, Canvas, Case, ItemState, Modality, Video
from portal.archive.storage import files as archive_storage
from portal.labs.models import Lab, User
from tests.portal.annotations.support import box


def make_canvas(lab: Lab, *, kind: str = "slide", accession: str = "A-1", **more: Any) -> Canvas:
    """A canvas of 1000 x 800 px at 0.5 um per pixel."""
    case, _ = Case.objects.get_or_create(lab=lab, accession=accession)
    fields = {"name": "Section 1", "mpp_x": 0.5, "mpp_y": 0.5, "width_px": 1000, "height_px": 800}
    return Canvas.objects.create(
        lab=lab,
        case=case,
        kind=kind,
        modality=Modality.ENDOSCOPY if kind in ("video", "mosaic") else Modality.HISTOLOGY,
        pixels_path="assets/none",
        content_hash=uuid.uuid4().hex,
        **fields | more,
    )


def make_video_canvas(lab: Lab, *, pts: list[int]) -> Canvas:
    """A video's canvas whose frame table has these PTS, 1/1000 s each."""
    canvas = make_canvas(lab, kind="video", mpp_x=None, mpp_y=None, name="Sweep")
    asset = Asset.objects.create(lab=lab, sha256=uuid.uuid4().hex, size_bytes=1, media_type="v")
    video = Video.objects.create(
        lab=lab,
        case=canvas.case,
        asset=asset,
        name="Sweep",
        canvas=canvas,
        state=ItemState.READY,
        frame_count=len(pts),
        time_base_s=0.001,
    )
    folder = archive_storage.derived_folder(video.pk)
    folder.mkdir(parents=True)
    key, packets = np.ones(len(pts), bool), np.arange(len(pts))
    table = FrameTable(np.array(pts), key, 0.001, packets, np.empty((0, 4), np.int64))
    save_frame_table(table, folder / "frames.npz")
    video.frames_path = archive_storage.relative(folder / "frames.npz")
    video.save()
    return canvas


@pytest.fixture
def foreign_canvas(other_lab: Lab) -> Canvas:
    """A canvas of the other lab."""
    return make_canvas(other_lab, accession="X-1")


@pytest.fixture
def video_canvas(lab: Lab, storage: Path) -> Canvas:
    """A video's canvas with frames at 0, 40, 80 and 200 ms."""
    return make_video_canvas(lab, pts=[0, 40, 80, 200])


@pytest.fixture
def foreign_label(other_lab: Lab) -> Label:
    """The other lab's label "Tumor"."""
    return label_set_ensure(lab=other_lab).labels.get(name="Tumor")


@pytest.fixture
def roi(canvas: Canvas, annotator: User) -> Roi:
    """A rectangle of 100 x 50 px."""
    return roi_create(canvas=canvas, user=annotator, geometry=box(10, 10, 110, 60)).roi


@pytest.fixture
def foreign_roi(foreign_canvas: Canvas, stranger: User) -> Roi:
    """A rectangle in the other lab."""
    return roi_create(canvas=foreign_canvas, user=stranger, geometry=box(10, 10, 110, 60)).roi
