"""What letters are drawn over: development images without text in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ml.errors import BadInputError
from ml.imaging.slides import open_slide
from ml.training.common.sources import IMAGE_SUFFIXES
from ml.training.common.stills import areas_mask, read_still, resized
from ml.types import ImageU8

STILLS = "endoscopy/laparoscopy-stills"
BURNT_IN = ((0.0, 0.86, 0.33, 1.0), (0.82, 0.82, 1.0, 1.0))
"""Where the recorder of those stills wrote."""
LEFT_OUT = ("00009", "00010", "00011", "00015")
"""Operations to measure on."""
_SLIDES = ("histology/slides", "histology/sections")
_NOT_LEARNED = ("fluorescence-dapi.ndpi", "her2st-b-d2.tif")  # its licence; to measure on
_TILES = (("histology/lc25000-lung", 100), ("histology/atlas/train", 1_200))
"""Folders, and how many of each."""
_LONG_SIDE_PX = 2_048
_STILLS_TIMES = 6
"""How often each still counts: about every third ground is then of endoscopy."""


def learned_grounds(data: Path, *, seed: int) -> list[ImageU8]:
    """Images to learn over, (H, W, 3) uint8 RGB; those of slides at most 2048 px.

    Raises:
        BadInputError: none there.
    """
    found = [*_stills(data)] * _STILLS_TIMES + [
        *_overviews(data),
        *_tiles(data, np.random.default_rng((seed, 1))),
    ]
    if not found:
        raise BadInputError(f"no development images in {data.name}")
    return found


def without_text(image: ImageU8) -> ImageU8:
    """A laparoscopy still with black where its recorder wrote."""
    image = image.copy()
    image[areas_mask(image.shape, BURNT_IN)] = 0
    return image


def _stills(data: Path) -> Iterator[ImageU8]:
    for path in sorted((data / STILLS).glob("*.jpg")):
        if not path.name.startswith(LEFT_OUT):
            yield without_text(read_still(path))


def _overviews(data: Path) -> Iterator[ImageU8]:
    """Each slide as a whole, and a piece of it in full size."""
    for folder in _SLIDES:
        for path in sorted((data / folder).glob("*")):
            if path.suffix in IMAGE_SUFFIXES and path.name not in _NOT_LEARNED:
                with open_slide(path) as slide:
                    yield slide.thumbnail(_LONG_SIDE_PX)
                    size = (slide.info.width_px // 2, slide.info.height_px // 2)
                    piece = (min(_LONG_SIDE_PX, size[0]), min(_LONG_SIDE_PX, size[1]))
                    yield slide.read_scaled((size[0] / 2, size[1] / 2), piece, 1.0)


def _tiles(data: Path, rng: np.random.Generator) -> Iterator[ImageU8]:
    for folder, count in _TILES:
        paths = sorted((data / folder).rglob("*.jpg")) + sorted((data / folder).rglob("*.png"))
        for at in rng.permutation(len(paths))[:count]:
            image = read_still(paths[int(at)])
            yield resized(image, long_side_px=max(256, *image.shape[:2]))
