"""Videos on the page: the player and the still frame show one picture, in the same place."""

from __future__ import annotations

import io
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from ml.types import ImageU8
from tests.browser.viewer_page import ViewerPage
from tests.ml.imaging.videos.sample_files import (
    COLOURS,
    MATRICES,
    Tags,
    corners,
    disc,
    patches,
    write_video,
    yuv_frame,
)

LONG = {"count": 40, "rate": 5}
"""Eight seconds: longer than a screenshot takes."""
PAL = Fraction(64, 45)
HD, SD = (400, 720), (400, 480)
WITHIN = 4
BT709_WITHIN = 6
"""Chromium's conversion in software clips a coefficient of BT.709: blue is 6 too dark."""


def colours(viewer: ViewerPage, places: list[tuple[float, float]]) -> list[Any]:
    """Colours on the screen, without a wait."""
    picture = Image.open(io.BytesIO(viewer.page.screenshot())).convert("RGB")
    return [picture.getpixel((round(x), round(y))) for x, y in places]


def centred(open_viewer: Any, canvas: Any) -> ViewerPage:
    """All of the canvas on the screen."""
    return open_viewer(canvas, f"x={canvas.width_px / 2}&y={canvas.height_px / 2}&z=1.6")


def shown_twice(viewer: ViewerPage, points: list[tuple[float, float]]) -> list[Any]:
    """Colours of the still frame and of the player, at shares of the canvas."""
    width, height = viewer.canvas.width_px, viewer.canvas.height_px
    viewer.wait_exact()
    places = viewer.places((x * width, y * height) for x, y in points)
    still = colours(viewer, places)
    before = viewer.text("[data-frame-index]")
    viewer.key("Space")
    expect(viewer.page.locator("[data-play]")).to_have_attribute("aria-pressed", "true")
    expect(viewer.page.locator("[data-frame-index]")).not_to_have_text(before)
    playing = colours(viewer, places)
    assert viewer.page.locator("[data-play]").get_attribute("aria-pressed") == "true"
    return [np.array(still, int), np.array(playing, int)]


ACROSS = [(at / 8, 0.5) for at in (1, 3, 5, 7)]
QUARTERS = [(0.25, 0.25), (0.75, 0.25), (0.25, 0.75), (0.75, 0.75)]


@pytest.mark.parametrize(
    ("name", "codec", "size", "matrix", "pix_fmt", "tags", "within"),
    [
        ("mjpeg.avi", "mjpeg", HD, "601", "yuvj422p", Tags(), WITHIN),
        pytest.param(
            "untagged.avi",
            "mpeg4",
            HD,
            "709",
            "yuv420p",
            Tags(),
            WITHIN,
            marks=pytest.mark.endurance,
        ),
        ("untagged.mp4", "libx264", HD, "709", "yuv420p", Tags(), BT709_WITHIN),
        ("untagged-sd.mp4", "libx264", SD, "601", "yuv420p", Tags(), WITHIN),
        ("full.mp4", "libx264", HD, "709", "yuvj420p", Tags(1, 1, 1, 2), WITHIN),
        pytest.param(
            "full-untagged.mp4",
            "libx264",
            HD,
            "601",
            "yuvj420p",
            Tags(range=2),
            WITHIN,
            marks=pytest.mark.endurance,
        ),
        pytest.param(
            "matrix-only.mp4",
            "libx264",
            HD,
            "601",
            "yuv420p",
            Tags(matrix=6),
            WITHIN,
            marks=pytest.mark.endurance,
        ),
        pytest.param(
            "pal-tags.mp4",
            "libx264",
            SD,
            "601",
            "yuv420p",
            Tags(5, 5, 5, 1),
            WITHIN,
            marks=pytest.mark.endurance,
        ),
        ("vp9.webm", "libvpx-vp9", HD, "601", "yuv420p", Tags(), WITHIN),
        pytest.param(
            "vp8.webm", "libvpx", HD, "601", "yuv420p", Tags(), WITHIN, marks=pytest.mark.endurance
        ),
    ],
)
def test_player_and_still_frame_have_the_recorded_colours(
    open_viewer: Any,
    ingest: Any,
    tmp_path: Path,
    name: str,
    codec: str,
    size: tuple[int, int],
    matrix: str,
    pix_fmt: str,
    tags: Tags,
    within: int,
) -> None:
    frame = yuv_frame(patches(size), matrix, pix_fmt, is_full=pix_fmt.startswith("yuvj"))
    path = write_video(tmp_path / name, frame, codec, tags=tags, **LONG)
    still, playing = shown_twice(centred(open_viewer, ingest(path)), ACROSS)
    assert np.abs(still - np.array(COLOURS)).max() <= WITHIN
    assert np.abs(playing - np.array(COLOURS)).max() <= within


def rgb_frame(rgb: ImageU8) -> av.VideoFrame:
    return av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(format="yuv420p")


@pytest.mark.parametrize(
    "name",
    [
        name
        if name in {"as stored", "turned clockwise", "mirrored left to right"}
        else pytest.param(name, marks=pytest.mark.endurance)
        for name in MATRICES
    ],
)
def test_player_and_still_frame_have_the_same_orientation(
    open_viewer: Any, ingest: Any, tmp_path: Path, name: str
) -> None:
    """With pixels that are not square: what is stretched turns with the rest."""
    a, b, c, d = MATRICES[name]
    frame = rgb_frame(corners((320, 240)))
    path = write_video(
        tmp_path / "a.mp4", frame, "libx264", matrix=(a, b, c, d), aspect=PAL, **LONG
    )
    canvas = ingest(path)
    assert (canvas.width_px, canvas.height_px) == ((240, 455) if b else (455, 240))
    still, playing = shown_twice(centred(open_viewer, canvas), QUARTERS)
    assert np.abs(still - playing).max() <= BT709_WITHIN
    # a corner of the canvas, as steps from its middle, is where the matrix puts a stored corner
    stored = {(a * x + c * y, b * x + d * y): (x, y) for x in (-1, 1) for y in (-1, 1)}
    for at, colour in zip([(-1, -1), (1, -1), (-1, 1), (1, 1)], still, strict=True):
        x, y = stored[at]
        expected = corners((2, 2))[(y + 1) // 2, (x + 1) // 2]
        assert np.abs(colour - expected.astype(int)).max() <= BT709_WITHIN


@pytest.mark.parametrize("name", ["as stored", "mirrored left to right"])
def test_an_roi_on_a_pal_video_has_the_same_place_in_frame_picture_and_export(
    open_viewer: Any, ingest: Any, tmp_path: Path, name: str, annotator: Any
) -> None:
    """The disc is left of the middle in the file, at (312, 288); mirrored, at (712, 288)."""
    from portal.annotations.formats.registry import writer_named
    from portal.annotations.formats.types import ExportChoices
    from portal.annotations.selectors.rois import roi_export

    stored = np.roll(
        disc((720, 576), PAL, 200), -141, axis=1
    )  # 141 stored px are 200 of the canvas
    path = write_video(
        tmp_path / "a.mp4",
        rgb_frame(stored),
        "libx264",
        matrix=MATRICES[name],
        aspect=PAL,
        **LONG,
    )
    canvas = ingest(path)
    x = 312 if name == "as stored" else 712
    viewer = centred(open_viewer, canvas)
    assert "1,024 × 576 px (file: 720 × 576)" in viewer.text(".status-size")
    disc_colours = [(x / 1024, 0.5), ((x - 92) / 1024, 0.5), ((x + 92) / 1024, 0.5)]
    around = [((x - 108) / 1024, 0.5), ((x + 108) / 1024, 0.5), (x / 1024, 180 / 576)]
    still, playing = shown_twice(viewer, disc_colours + around)
    for result in (still, playing):
        assert (result[:3] > 180).all()
        assert (result[3:] < 80).all()
    viewer.key("Space")
    viewer.wait_exact()
    viewer.polygon([(x - 100, 188), (x + 100, 188), (x + 100, 388), (x - 100, 388)])
    viewer.wait_saved()
    with viewer.database:
        (roi,) = viewer.stored()
        pieces = roi_export(annotator, canvas, writer=writer_named("coco"), choices=ExportChoices())
        document = json.loads(b"".join(pieces))
        picture = b"".join(
            roi_export(
                annotator,
                canvas,
                writer=writer_named("png"),
                choices=ExportChoices(roi_id=roi.pk, width_px=248),
            )
        )
    assert (roi.left, roi.top, roi.right, roi.bottom) == pytest.approx(
        (x - 100, 188, x + 100, 388), abs=3
    )
    (shape,) = document["annotations"]
    assert shape["bbox"] == pytest.approx([(x - 100) * 45 / 64, 188, 200 * 45 / 64, 200], abs=3)
    seen = np.asarray(Image.open(io.BytesIO(picture)).convert("L"))
    assert seen[seen.shape[0] // 2, seen.shape[1] // 2] > 180
    assert seen[34, 34] < 120  # the corner inside the outline is outside the disc
