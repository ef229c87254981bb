"""Targets of the confined child: write a still, a slide or a video again, with black boxes.

The new file holds pixels, colour profile and scale, and nothing else of the old one: no label, no
macro image, no metadata, no sound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyvips

from ml.config import config_from_dict
from ml.errors import CorruptFileError
from ml.files import replacing
from ml.imaging.formats.sniff import read_head, still_format
from ml.imaging.formats.tiff_fields import is_tiff
from ml.imaging.picture_boxes import REDACTED_NAME, boxes_from_json, pixel_boxes
from ml.imaging.slides.metadata import plausible_mpp
from ml.imaging.slides.pyramids import save_image, write_pyramid
from ml.imaging.slides.row_stream import image_of_rows
from ml.imaging.slides.slide import SlideImage, open_slide
from ml.imaging.slides.stills import UM_PER_MM, open_still
from ml.imaging.videos.frame_table_file import load_frame_table
from ml.imaging.videos.transcode import transcode_h264
from ml.types import DisplayRange, ImageU8, JsonObject, Progress, no_progress

STILL_QUALITY = 95
"""libjpeg quality of a JPEG still that is coded again."""
VIDEO_CRF = 16
"""x264's quality of a video that replaces its original."""
_ROWS_PX = 256  # read at once; a scan of 200,000 px has 150 MB of them
_FULL_ALPHA = {"uchar": 255, "ushort": 65_535, "float": 1.0, "short": 32_767}
_PHASE = "redacting"
_OPTIONS: dict[str, dict[str, Any]] = {
    "jpeg": {"Q": STILL_QUALITY, "subsample_mode": "off"},
    "webp": {"lossless": True},
    "tiff": {"compression": "deflate", "predictor": "horizontal", "bigtiff": True},
    "png": {},
}


def redact_still(
    *,
    path: str,
    out_dir: str,
    boxes: Sequence[Sequence[float]],
    progress: Progress = no_progress,
) -> JsonObject:
    """Write a still again, upright, in its own format; BMP and JPEG 2000 become PNG.

    JPEG is coded again with quality 95, the other formats without loss. Of an animation or a file
    of several pages the picture that is shown remains.

    Args:
        boxes: x, y, width and height of each, as shares of the upright picture.
    Returns:
        {}: the file is ``REDACTED_NAME`` in ``out_dir``.
    Raises:
        CorruptFileError, UnsupportedFormatError, TooLargeError: As ``open_still``.
        ShapeError: A box has no area in the picture.
    """
    source = Path(path)
    image = open_still(source)
    for left, top, right, bottom in pixel_boxes(
        boxes_from_json(boxes), (image.width, image.height)
    ):
        image = image.insert(_black(image, right - left, bottom - top), left, top)
    head = read_head(source)
    name = "tiff" if is_tiff(head) else still_format(head)
    name = name if name in _OPTIONS else "png"
    options = dict(_OPTIONS[name])
    if name == "tiff" and image.format == "float":
        options["predictor"] = "float"
    with replacing(Path(out_dir) / REDACTED_NAME) as target:
        save_image(image, target, name, options, progress=progress, phase=_PHASE)
    return {}


def redact_slide(
    *,
    path: str,
    out_dir: str,
    boxes: Sequence[Sequence[float]],
    display_range: JsonObject | None = None,
    progress: Progress = no_progress,
) -> JsonObject:
    """Write a slide again as a tiled pyramidal TIFF: all levels are made of its level 0.

    Args:
        boxes: As in ``redact_still``, of the scan.
        display_range: ``DisplayRange`` as JSON, of pixels of more than 8 bits, which become 8 bits.
    Returns, Raises:
        As ``redact_still``, and what ``open_slide`` raises.
    """
    display = config_from_dict(DisplayRange, display_range) if display_range else None
    with open_slide(path, display_range=display) as slide:
        size = (slide.info.width_px, slide.info.height_px)
        rows = _rows(slide, pixel_boxes(boxes_from_json(boxes), size))
        with image_of_rows(size, rows) as image:
            write_pyramid(
                _copy_metadata(image, slide),
                Path(out_dir) / REDACTED_NAME,
                progress=_name_phase(progress),
            )
    return {}


def redact_video(
    *,
    path: str,
    out_dir: str,
    frames: str,
    boxes: Sequence[Sequence[float]],
    progress: Progress = no_progress,
) -> JsonObject:
    """Write a video again as H.264 in MP4: every frame at its time, without sound.

    Args:
        frames: Path of the video's frame table.
        boxes: As in ``redact_still``, black in every frame.
    Returns:
        {}: the file is ``REDACTED_NAME`` in ``out_dir``.
    Raises:
        CorruptFileError: A frame cannot be decoded any more.
        ShapeError, LimitExceededError: As ``redact_still`` and ``transcode_h264``.
    """
    table = load_frame_table(frames)
    transcoding = transcode_h264(
        path,
        Path(out_dir) / REDACTED_NAME,
        _name_phase(progress),
        table=table,
        boxes=boxes_from_json(boxes),
        crf=VIDEO_CRF,
    )
    if transcoding.frames != len(table):
        raise CorruptFileError(
            f"the video has {len(table):,} frames, of which {transcoding.frames:,} could be written"
        )
    return {}


def _black(image: Any, width: int, height: int) -> Any:
    """A black, opaque rectangle with the bands of an image."""
    ink = [0.0] * image.bands
    if image.bands > 1 and image.hasalpha():
        ink[-1] = _FULL_ALPHA.get(image.format, 0.0)
    black = pyvips.Image.black(width, height) + ink
    return black.cast(image.format).copy(interpretation=image.interpretation)


def _rows(slide: SlideImage, boxes: list[tuple[int, int, int, int]]) -> Iterator[ImageU8]:
    """Rows of level 0 from top to bottom, black in the boxes."""
    width, height = slide.info.width_px, slide.info.height_px
    for y in range(0, height, _ROWS_PX):
        rows = slide.read_level(0, (0, y), (width, min(_ROWS_PX, height - y))).copy()
        for left, top, right, bottom in boxes:
            rows[max(top - y, 0) : max(bottom - y, 0), left:right] = 0
        yield rows


def _copy_metadata(image: Any, slide: SlideImage) -> Any:
    """The picture with the scale and the colour profile of a slide."""
    mpp_x, mpp_y = plausible_mpp(slide.info.mpp_x, slide.info.mpp_y)
    if mpp_x is not None and mpp_y is not None:
        image = image.copy(xres=UM_PER_MM / mpp_x, yres=UM_PER_MM / mpp_y)
    if slide.icc_profile is not None:
        image = image.copy()
        image.set_type(pyvips.GValue.blob_type, "icc-profile-data", slide.icc_profile)
    return image


def _name_phase(progress: Progress) -> Progress:
    return lambda done, total, _: progress(done, total, _PHASE)
