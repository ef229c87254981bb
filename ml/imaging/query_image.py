"""Functions for the limited child process that prepare a query picture."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from PIL import Image

from ml.errors import UnsupportedFormatError
from ml.imaging.formats.sniff import sniff
from ml.imaging.limits import require_still_size
from ml.imaging.results import QueryImage
from ml.imaging.slides.slide import open_slide
from ml.types import JsonObject, Progress, no_progress

PICTURE_NAME = "picture.png"
MAX_SIDE_PX = 4_096  # 4 mm at the encoder's 1 um a pixel: more is a slide; 50 MB in memory


def make_query_image(*, path: str, out_dir: str, progress: Progress = no_progress) -> JsonObject:
    """Decode a picture upright, reduced to ``MAX_SIDE_PX``, into ``PICTURE_NAME`` of ``out_dir``.

    Returns:
        ``QueryImage`` as JSON.
    Raises:
        UnsupportedFormatError: not a still image.
        CorruptFileError, TooLargeError: as ``open_slide``.
    """
    if (kind := sniff(Path(path))) != "still":
        raise UnsupportedFormatError(
            f"the file is a {kind}; expected a picture: JPEG, JPEG 2000, PNG, TIFF, WebP or BMP"
        )
    with open_slide(path) as still:
        width = still.info.width_px
        require_still_size(width, still.info.height_px)
        pixels = still.thumbnail(MAX_SIDE_PX)
    Image.fromarray(pixels).save(Path(out_dir) / PICTURE_NAME)
    progress(1, 1, "decoding")
    height_px, width_px = pixels.shape[:2]
    return asdict(QueryImage(width_px, height_px, reduced_by=width / width_px))
