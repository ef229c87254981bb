"""Slides in TIFF among whose images a label with a name is hidden, in every way found so far."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import tifffile

from ml.types import ImageU8

SIZE = (1_536, 1_024)
"""(width, height) of level 0."""
LEVELS = [(1_536, 1_024), (768, 512), (384, 256)]
TILES: dict[str, Any] = {
    "tile": (128, 128), "photometric": "rgb", "compression": "zlib", "metadata": None
}  # fmt: skip


def tissue() -> ImageU8:
    """(1024, 1536, 3): blurred spots, the same each time."""
    rng = np.random.default_rng(7)
    noise = rng.integers(0, 255, (SIZE[1] // 8, SIZE[0] // 8, 3)).astype(np.float32)
    return np.asarray(cv2.resize(noise, SIZE, interpolation=cv2.INTER_CUBIC).clip(0, 255), np.uint8)


def halved(image: ImageU8, times: int = 1) -> ImageU8:
    """By means of 2 x 2."""
    size = (image.shape[1] >> times, image.shape[0] >> times)
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)


def label(width: int, height: int) -> ImageU8:
    """A white label with a name."""
    image = np.full((height, width, 3), 245, np.uint8)
    cv2.putText(image, "DOE JANE", (10, height // 2), cv2.FONT_HERSHEY_SIMPLEX, 2, (20, 20, 20), 6)
    return image


def _levels(tiff: tifffile.TiffWriter, **more: Any) -> None:
    tiff.write(tissue(), **TILES, **more)
    tiff.write(halved(tissue()), subfiletype=1, **TILES)
    tiff.write(halved(tissue(), 2), subfiletype=1, **TILES)


def _reduced(tiff: tifffile.TiffWriter) -> None:
    _levels(tiff)
    tiff.write(label(320, 360), subfiletype=1, **TILES)


def _of_the_same_shape(tiff: tifffile.TiffWriter) -> None:
    _levels(tiff)
    tiff.write(label(600, 400), subfiletype=1, **TILES)


def _half_the_coarsest_level(tiff: tifffile.TiffWriter) -> None:
    _levels(tiff)
    tiff.write(label(192, 128), subfiletype=1, **TILES)


def _larger_than_a_level(tiff: tifffile.TiffWriter) -> None:
    _levels(tiff)
    tiff.write(label(900, 600), subfiletype=1, **TILES)


def _grey(tiff: tifffile.TiffWriter) -> None:
    _levels(tiff)
    grey = label(192, 128)[..., 0].copy()
    tiff.write(grey, subfiletype=1, **{**TILES, "photometric": "minisblack"})


def _grey_of_a_grey_slide(tiff: tifffile.TiffWriter) -> None:
    grey = {**TILES, "photometric": "minisblack"}
    for times in range(3):
        image = halved(tissue(), times)[..., 0].copy()
        tiff.write(image, subfiletype=int(times > 0), **grey)
    tiff.write(label(192, 128)[..., 0].copy(), subfiletype=1, **grey)


def _first(tiff: tifffile.TiffWriter) -> None:
    tiff.write(label(480, 320), **TILES)
    _levels(tiff)


def _among_sub_ifds(tiff: tifffile.TiffWriter) -> None:
    tiff.write(tissue(), subifds=3, **TILES)
    tiff.write(halved(tissue()), subfiletype=1, **TILES)
    tiff.write(halved(tissue(), 2), subfiletype=1, **TILES)
    tiff.write(label(192, 128), subfiletype=1, **TILES)


def _page_after_sub_ifds(tiff: tifffile.TiffWriter) -> None:
    tiff.write(tissue(), subifds=2, **TILES)
    tiff.write(halved(tissue()), subfiletype=1, **TILES)
    tiff.write(halved(tissue(), 2), subfiletype=1, **TILES)
    tiff.write(label(192, 128), subfiletype=1, **TILES)


def _in_strips(tiff: tifffile.TiffWriter) -> None:
    _levels(tiff)
    tiff.write(label(192, 128), photometric="rgb", metadata=None)


def _in_an_aperio_slide(tiff: tifffile.TiffWriter) -> None:
    description = (
        f"Aperio Image Library v11.2.1\r\n{SIZE[0]}x{SIZE[1]} (128x128)|AppMag = 20|MPP = 0.5"
    )
    _levels(tiff, description=description)
    tiff.write(label(192, 128), description="Aperio Image Library v11.2.1\r\n", **TILES)


HIDDEN: dict[str, Callable[[tifffile.TiffWriter], None]] = {
    write.__name__.strip("_"): write
    for write in (
        _reduced, _of_the_same_shape, _half_the_coarsest_level, _larger_than_a_level, _grey,
        _grey_of_a_grey_slide, _first, _among_sub_ifds, _page_after_sub_ifds, _in_strips,
        _in_an_aperio_slide,
    )
}  # fmt: skip


def write_with_label(path: Path, how: str, *, byteorder: str = "<", bigtiff: bool = False) -> Path:
    """A slide of ``tissue`` in three levels, with a label hidden in one of the ways of HIDDEN."""
    with tifffile.TiffWriter(path, byteorder=byteorder, bigtiff=bigtiff) as tiff:
        HIDDEN[how](tiff)
    return path
