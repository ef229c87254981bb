"""Development images that the network of letters did not learn from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ml.imaging.slides import open_slide
from ml.natural_order import natural_sort
from ml.training.common.stills import read_still, resized
from ml.training.letters.grounds import LEFT_OUT, STILLS, without_text
from ml.types import ImageU8

LONG_SIDE_PX = 1_280  # as frames are looked at; no image is enlarged
_CLEAN = {
    "glas": ("histology/glas", "*", 1),
    "atlas": ("histology/atlas/eval", "*.jpg", 3),
    "stains": ("histology/stain", "*.jpg", 1),
    "sinus": ("endoscopy/sinus-4584", "*.jpg", 3),
    "fetoscopy": ("endoscopy/fetoscopy-anon001/frames", "*.jpg", 10),
}
"""Folder, pattern, and the step between images: consecutive frames are nearly one picture."""
_GI = "endoscopy/gi-and-nasal-stills"
GI_CLEAN = ("cju0qoxqj9q6s0835b43399p4", "cju0rx1idathl0835detmsp84")
"""Stills of that folder without text; the others have a date or a mark."""
_OVERVIEW = "histology/slides/her2st-b-d2.tif"
_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".tif")


def clean_grounds(data: Path) -> Iterator[tuple[str, ImageU8]]:
    """Images without text, each with the name of its set."""
    for path in _left_out(data):
        yield "laparoscopy", without_text(read_still(path))
    for name, (folder, pattern, step) in _CLEAN.items():
        paths = sorted(path for path in (data / folder).rglob(pattern) if path.suffix in _SUFFIXES)
        for path in paths[::step]:
            yield name, small(read_still(path))
    for stem in GI_CLEAN:
        if (data / _GI / f"{stem}.jpg").exists():
            yield "gi", small(read_still(data / _GI / f"{stem}.jpg"))
    if (data / _OVERVIEW).exists():
        with open_slide(data / _OVERVIEW) as slide:
            yield "overview", slide.thumbnail(LONG_SIDE_PX)


def written_by_devices(data: Path) -> Iterator[tuple[str, ImageU8]]:
    """Stills with real burnt-in text, each with the name of its set."""
    for path in _left_out(data):
        yield "laparoscopy", read_still(path)
    for path in sorted((data / _GI).glob("*.jpg")):
        if path.stem not in GI_CLEAN:
            yield "gi-and-nasal", read_still(path)


def operations(data: Path) -> dict[str, list[ImageU8]]:
    """The stills of each laparoscopic operation in order of time, without their text."""
    found: dict[str, list[ImageU8]] = {}
    for path in natural_sort((data / STILLS).glob("*.jpg")):
        found.setdefault(path.name[:5], []).append(without_text(read_still(path)))
    return found


def frames_of(data: Path, name: str) -> list[ImageU8]:
    """The frames of ``fetoscopy`` or ``sinus`` that are looked at."""
    folder, pattern, step = _CLEAN[name]
    return [small(read_still(path)) for path in natural_sort((data / folder).glob(pattern))[::step]]


def small(image: ImageU8) -> ImageU8:
    """The image, shrunk to ``LONG_SIDE_PX`` where it is larger."""
    return (
        image if max(image.shape[:2]) <= LONG_SIDE_PX else resized(image, long_side_px=LONG_SIDE_PX)
    )


def _left_out(data: Path) -> list[Path]:
    paths = sorted((data / STILLS).glob("*.jpg"))
    return [path for path in paths if path.name.startswith(LEFT_OUT)]
