"""Development images with and without text in their pixels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ml.imaging.slides.slide import open_slide
from ml.natural_order import natural_sort
from ml.training.common.stills import areas_mask, read_still, resized
from ml.types import ImageU8

LONG_SIDE_PX = 1_280  # as in the inspection of frames
_STILLS = "endoscopy/laparoscopy-stills"
_RECORDER = ((0.0, 0.86, 0.33, 1.0), (0.82, 0.82, 1.0, 1.0))
"""Areas of those stills with text of the recorder."""
_OPERATIONS = ("00009", "00010", "00011", "00015")
"""Operations whose stills are measured."""
_CLEAN = {
    "glas": ("histology/glas", "*", 1),
    "atlas": ("histology/atlas/eval", "*.jpg", 3),
    "stains": ("histology/stain", "*.jpg", 1),
    "sinus": ("endoscopy/sinus-4584", "*.jpg", 3),
    "fetoscopy": ("endoscopy/fetoscopy-anon001/frames", "*.jpg", 10),
}
"""Folder, pattern, and step between images."""
_GI = "endoscopy/gi-and-nasal-stills"
_GI_CLEAN = ("cju0qoxqj9q6s0835b43399p4", "cju0rx1idathl0835detmsp84")
_GI_DATED = ("cju0qkwl35piu0993l0dewei2", "cju0qx73cjw570799j4n5cjze", "cju0roawvklrq0799vmjorwfv")
"""Stills of that folder without text, and with a date; the others have a maker's name."""
_OVERVIEW = "histology/slides/her2st-b-d2.tif"
_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".tif")


def clean_stills(data: Path) -> Iterator[ImageU8]:
    """Images without text."""
    for path in _stills_to_measure(data):
        yield without_text(read_still(path))
    for folder, pattern, step in _CLEAN.values():
        paths = sorted(path for path in (data / folder).rglob(pattern) if path.suffix in _SUFFIXES)
        for path in paths[::step]:
            yield small(read_still(path))
    for path in _gi(data, _GI_CLEAN):
        yield small(read_still(path))
    if (data / _OVERVIEW).exists():
        with open_slide(data / _OVERVIEW) as slide:
            yield slide.thumbnail(LONG_SIDE_PX)


def dated_stills(data: Path) -> Iterator[ImageU8]:
    """Stills in which a device wrote a date."""
    for path in _gi(data, _GI_DATED):
        yield read_still(path)


def device_stills(data: Path) -> Iterator[ImageU8]:
    """Stills in which a device wrote its maker's name or a measurement."""
    for path in _stills_to_measure(data):
        yield read_still(path)
    for path in sorted((data / _GI).glob("Exp*.jpg")):
        yield read_still(path)


def without_text(image: ImageU8) -> ImageU8:
    """Black out the recorder's text of a laparoscopy still."""
    image = image.copy()
    image[areas_mask(image.shape, _RECORDER)] = 0
    return image


def operations(data: Path) -> dict[str, list[ImageU8]]:
    """Stills of each laparoscopic operation in order of time, without text."""
    stills: dict[str, list[ImageU8]] = {}
    for path in natural_sort((data / _STILLS).glob("*.jpg")):
        stills.setdefault(path.name[:5], []).append(without_text(read_still(path)))
    return stills


def frames_of(data: Path, name: str) -> list[ImageU8]:
    """Inspected frames of ``fetoscopy`` or ``sinus``."""
    folder, pattern, step = _CLEAN[name]
    return [small(read_still(path)) for path in natural_sort((data / folder).glob(pattern))[::step]]


def small(image: ImageU8) -> ImageU8:
    """Shrink an image to ``LONG_SIDE_PX`` if it is larger."""
    return (
        image if max(image.shape[:2]) <= LONG_SIDE_PX else resized(image, long_side_px=LONG_SIDE_PX)
    )


def _stills_to_measure(data: Path) -> list[Path]:
    paths = sorted((data / _STILLS).glob("*.jpg"))
    return [path for path in paths if path.name.startswith(_OPERATIONS)]


def _gi(data: Path, stems: tuple[str, ...]) -> list[Path]:
    paths = (data / _GI / f"{stem}.jpg" for stem in stems)
    return [path for path in paths if path.exists()]
