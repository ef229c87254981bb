"""Target of the confined child: the picture on which a person draws boxes."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import openslide

from ml.errors import CorruptFileError, UnknownNameError
from ml.imaging.formats.archives import is_zip
from ml.imaging.formats.dicom_video import is_dicom_video, unwrap_video
from ml.imaging.formats.sniff import read_head, sniff
from ml.imaging.ingest import UNWRAPPED_NAME, unpack_slide
from ml.imaging.picture_boxes import PREVIEW_NAME
from ml.imaging.resize import reduce_to
from ml.imaging.slides.backends import slide_vendor
from ml.imaging.slides.jpeg import encode_jpeg
from ml.imaging.slides.slide import open_slide
from ml.imaging.videos.colours import tag_colours
from ml.imaging.videos.containers import decode_frames, open_video
from ml.imaging.videos.display import display_geometry, frame_rgb
from ml.types import ImageU8, JsonObject, Progress, no_progress

SIDE_PX = 1_600
"""Longer side of the picture: a screen's width."""
_QUALITY = 85
_MAX_DECODED = 400  # frames from a key frame to the one that is shown
_US_PER_S = 1_000_000


def preview(
    *, path: str, out_dir: str, image: str = "", at: float = 0.0, progress: Progress = no_progress
) -> JsonObject:
    """Write the picture of a still, a slide or a frame as ``PREVIEW_NAME`` into ``out_dir``.

    Args:
        image: "label" or "macro" of a slide; "" for the picture itself.
        at: Place of the frame in a video, as a share of its length.
    Returns:
        {"kind", "images"}: "slide", "still" or "video", and the names of a slide's further images.
    Raises:
        UnknownNameError: The file has no such image.
        BadInputError: As ``open_slide`` and ``open_video``.
    """
    source, folder = Path(path), Path(out_dir)
    head = read_head(source)
    kind = sniff(source)
    is_video = kind == "video"
    if is_dicom_video(head):
        source = unwrap_video(source, folder / UNWRAPPED_NAME)
    elif is_zip(head):
        source = unpack_slide(source, folder)
    images = {} if is_video else _further_images(source)
    if image:
        if image not in images:
            raise UnknownNameError("image", image, sorted(images))
        picture = images[image]
    elif is_video:
        picture = _frame(source, at)
    else:
        with open_slide(source) as slide:
            picture = slide.thumbnail(SIDE_PX)
    small = reduce_to(picture, SIDE_PX)
    (folder / PREVIEW_NAME).write_bytes(encode_jpeg(small, quality=_QUALITY))
    return {"kind": kind, "images": sorted(images)}


def _further_images(path: Path) -> dict[str, ImageU8]:
    """Label and macro image of a slide."""
    if slide_vendor(path) is None:
        return {}
    with openslide.OpenSlide(path) as slide:
        associated, images = slide.associated_images, {}
        for name in ("label", "macro"):
            try:
                if name in associated:
                    images[name] = np.asarray(associated[name].convert("RGB"))
            except openslide.OpenSlideError:
                break  # damaged: OpenSlide refuses all later reads of this handle
        return images


def _frame(path: Path, at: float) -> ImageU8:
    """Upright pixels of the frame at a share of a video's length, or of one soon before it."""
    with open_video(path) as (container, stream):
        first = next((frame for _, frame in decode_frames(container, stream)), None)
        if first is None:
            raise CorruptFileError("no frame of the video can be decoded")
        geometry, _ = display_geometry(stream, first)
        last_decoded = first
        length_s = (container.duration or 0) / _US_PER_S
        start_s = (container.start_time or 0) / _US_PER_S
        target_s = start_s + length_s * min(max(at, 0.0), 1.0)
        if at <= 0 or not length_s:
            return frame_rgb(last_decoded, geometry)
        try:
            container.seek(int(target_s * _US_PER_S), backward=True)
            for number, frame in enumerate(container.decode(stream)):
                tag_colours(frame, stream.codec_context.codec.canonical_name)
                last_decoded = frame
                if number >= _MAX_DECODED or (frame.time is not None and frame.time >= target_s):
                    break
        except (MemoryError, OSError):
            raise
        except av.error.FFmpegError:
            pass  # what was decoded before the damage is shown
        return frame_rgb(last_decoded, geometry)
