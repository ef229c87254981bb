"""Tiled pyramidal TIFFs, written by libvips as a stream: the format of every derived canvas.

Pixels of 8 bits are coded as JPEG, deeper ones with their values, without loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyvips

from ml.errors import CorruptFileError, ShapeError
from ml.files import replacing
from ml.imaging.limits import require_slide_size
from ml.imaging.slides.stills import UM_PER_MM, first_line, is_deep_image, open_still
from ml.types import ImageU8, Progress, no_progress

QUALITY = 90
"""libjpeg quality; from 90 on libvips stores chroma at full resolution."""
_BIG_TIFF_BYTES = 3_500_000_000  # plain TIFF ends at 4 GiB; a pyramid adds a third


def write_pyramid(
    image: ImageU8 | str | Path | pyvips.Image,
    out_path: str | Path,
    *,
    mpp: float | None = None,
    tile_px: int = 256,
    quality: int = QUALITY,
    progress: Progress = no_progress,
) -> Path:
    """Write a tiled pyramidal TIFF, in bounded memory, complete or not at all.

    Args:
        image: (H, W, 3) or (H, W) uint8, or the path of a still (turned upright, ICC profile kept),
            or an image of libvips: three bands of 8 bits, or deeper values.
        mpp: microns per pixel, written as the TIFF resolution; None keeps that of the image,
            which readers use only if it is plausible.
        tile_px: side of the tiles, a multiple of 16.
        progress: called with (percent, 100, "pyramid"); what it raises stops the work.
    Returns:
        ``out_path``. Levels are halves, down to one tile.
    Raises:
        ShapeError: the array or ``tile_px`` is not as documented.
        CorruptFileError, TooLargeError: the still cannot be decoded, or is too large.
    """
    if tile_px < 16 or tile_px % 16:
        raise ShapeError("tile_px", expected="a positive multiple of 16", actual=str(tile_px))
    out_path = Path(out_path)
    source = _source(image)
    require_slide_size(source.width, source.height)
    with replacing(out_path) as temporary:
        _save(_with_mpp(source, mpp), temporary, tile_px, quality, progress)
    return out_path


def _source(image: ImageU8 | str | Path | pyvips.Image) -> Any:
    if isinstance(image, pyvips.Image):
        return image
    if not isinstance(image, np.ndarray):
        return open_still(image, sequential=True)
    if image.dtype != np.uint8 or image.ndim not in (2, 3) or image.shape[2:] not in ((), (3,)):
        raise ShapeError(
            "image", expected="(H, W) or (H, W, 3) uint8", actual=f"{image.shape} {image.dtype}"
        )
    if image.ndim == 2:
        image = np.repeat(image[..., None], 3, axis=2)
    return pyvips.Image.new_from_array(np.ascontiguousarray(image), interpretation="srgb")


def _with_mpp(image: Any, mpp: float | None) -> Any:
    if mpp is None:
        return image
    return image.copy(xres=UM_PER_MM / mpp, yres=UM_PER_MM / mpp)


def _coding(image: Any, quality: int) -> dict[str, Any]:
    if not is_deep_image(image):
        return {"compression": "jpeg", "Q": quality}
    predictor = "float" if image.format == "float" else "horizontal"
    return {"compression": "deflate", "predictor": predictor}


def _save(image: Any, path: Path, tile_px: int, quality: int, progress: Progress) -> None:
    options = {
        "tile": True,
        "tile_width": tile_px,
        "tile_height": tile_px,
        "pyramid": True,
        "resunit": "cm",
        "bigtiff": image.width * image.height > _BIG_TIFF_BYTES // 2,
        **_coding(image, quality),
    }
    save_image(image, path, "tiff", options, progress=progress, phase="pyramid")


def save_image(
    image: Any,
    path: Path,
    file_format: str,
    options: Mapping[str, Any],
    *,
    progress: Progress,
    phase: str,
) -> None:
    """Save an image of libvips; of its metadata only the ICC profile and resolution stay.

    Args:
        file_format: "tiff", "jpeg", "png" or "webp".
        options: of libvips' saver.
        progress: called with (percent, 100, phase), first with 0; what it raises stops the work.
    Raises:
        CorruptFileError: The image cannot be decoded.
        OSError: The disk is full.
    """
    raised: list[BaseException] = []

    def on_eval(_: object, state: Any) -> None:
        if raised:
            return
        try:
            progress(min(int(state.percent), 100), 100, phase)
        except BaseException as error:  # noqa: BLE001 - carried out of a C callback, raised below
            raised.append(error)
            image.set_kill(True)

    progress(0, 100, phase)  # libvips need not report on a small image
    image.set_progress(True)
    image.signal_connect("eval", on_eval)
    try:
        getattr(image, f"{file_format}save")(str(path), keep="icc", **options)
    except pyvips.Error as error:
        if raised:
            raise raised[0] from None
        if "space" in str(error).lower():
            raise OSError(f"the {phase} could not be written: {first_line(error)}") from error
        raise CorruptFileError(f"the image cannot be decoded: {first_line(error)}") from error
    if raised:
        raise raised[0]
