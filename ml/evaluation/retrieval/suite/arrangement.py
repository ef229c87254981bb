"""Sets of large regions whose arrangement matters: parts of a region among rearranged copies.

A copy with the same tissue in another arrangement is a wrong answer, so the mean over patches
cannot tell it from the right one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from shapely.geometry import Point, box

from ml.errors import BadInputError
from ml.evaluation.retrieval.regions import RegionImage
from ml.evaluation.retrieval.suite.alignment import READ_MPP, read_section
from ml.evaluation.retrieval.suite.config import SetConfig
from ml.evaluation.retrieval.suite.sets import Item, SuiteQuery, SuiteSet, task_of
from ml.roi.measures.features import tissue_share
from ml.training.roi.arrangement.collages import MIN_PIECES, collage, pieces_of, rearranged
from ml.training.roi.patches.blocks import Block, read_patients
from ml.types import ImageU8, Progress

_COLLAGES = 2  # of each patient, of the same pieces
_SHIFT_PX = 56  # of the window of a query, so that its patches are not those of the gallery
_MIN_TISSUE = 0.5  # share of tissue that a cell of a slide needs
_LOOK_STEP = 4  # pixels between those by which tissue is measured
_OCCLUDED = 1 / 3  # share of a region that is occluded
HALF, OCCLUDED = "half", "occluded third"


@dataclass(frozen=True, slots=True)
class LargeRegion:
    """A large region.

    Attributes:
        key: Cache key of its source.
        group: Unit of the bootstrap.
        read: Reads its pixels (S, S, 3) uint8 at 1 um per pixel.
    """

    key: str
    patient: str
    group: str
    read: Callable[[], ImageU8]


def collage_set(config: SetConfig, data: Path, progress: Progress) -> SuiteSet:
    """Set of collages of pieces of each patient of a table of tiles.

    Raises:
        BadInputError: See ``read_patients``; or no patient has enough pieces.
    """
    blocks = read_patients(data / config.path, use=config.where.get("use", ""), progress=progress)
    return collages_of(config, blocks)


def collages_of(config: SetConfig, blocks: Mapping[str, Sequence[Block]]) -> SuiteSet:
    """Set of two collages of the pieces of each patient.

    Args:
        blocks: Tissue by patient.
    Raises:
        BadInputError: No patient has enough pieces.
    """
    large_regions = []
    for number, (patient, patient_blocks) in enumerate(sorted(blocks.items())):
        pieces = pieces_of(patient_blocks)
        for turn in range(_COLLAGES if len(pieces) >= MIN_PIECES else 0):
            pixels = collage(pieces, np.random.default_rng((number, turn)))
            key = f"{config.path} {patient} {turn}"
            large_regions.append(
                LargeRegion(key, patient, patient, partial(_return_pixels, pixels))
            )
    return part_set(config, large_regions)


def slide_set(config: SetConfig, data: Path, progress: Progress) -> SuiteSet:
    """Set of the cells of several slides, which do not overlap.

    Raises:
        BadInputError: A slide is missing.
    """
    large_regions = []
    for number, (name, patient) in enumerate(sorted(config.patients.items())):
        path = data / config.path / name
        if not path.is_file():
            raise BadInputError(f"{config.path}/{name}: no such slide")
        section = read_section(path)
        side = round(config.cell_um / READ_MPP)
        for x, y in tissue_corners(section.pixels, side):
            key = f"{config.path}/{name} {path.stat().st_size} {x} {y} {side}"
            read = partial(_window, section.pixels, x, y, side)
            large_regions.append(LargeRegion(key, patient, key, read))
        progress(number + 1, len(config.patients), f"{config.name}: reading slides")
    return part_set(config, large_regions)


def part_set(config: SetConfig, large_regions: Sequence[LargeRegion]) -> SuiteSet:
    """Set whose queries are parts of regions, among all regions and their rearranged copies.

    The only relevant answer of a query is the region that it is a part of.

    Raises:
        BadInputError: No regions.
    """
    items: list[Item] = []

    def add(section: LargeRegion, part: str, read: Callable[[], RegionImage]) -> int:
        patient = f"{config.name}/{section.patient}"
        items.append(Item(f"{section.key} {part}", patient, patient, read))
        return len(items) - 1

    gallery: list[int] = []
    numbers = []
    for at, section in enumerate(large_regions):
        numbers.append(add(section, "whole", partial(_read_region, section)))
        gallery.append(numbers[-1])
        for copy in range(config.rearranged):
            read = partial(_read_rearranged, section, (at, copy))
            gallery.append(add(section, f"rearranged {copy}", read))
    members = np.array(gallery, np.int64)
    tasks = []
    for name, read_part in ((HALF, _read_half), (OCCLUDED, _read_occluded)):
        queries = [
            SuiteQuery(
                add(section, name, partial(read_part, section, at)),
                members,
                members == numbers[at],
                config.name,
                section.group,
            )
            for at, section in enumerate(large_regions)
        ]
        tasks.append(task_of(name, queries))
    return SuiteSet(config, tuple(items), tuple(gallery), tuple(tasks))


def tissue_corners(pixels: ImageU8, side: int) -> list[tuple[int, int]]:
    """Corners (x, y) of the cells of a grid that hold enough tissue."""
    height, width = pixels.shape[:2]
    small = pixels[::_LOOK_STEP, ::_LOOK_STEP]
    look = side // _LOOK_STEP
    corners = [
        (x, y) for y in range(0, height - side + 1, side) for x in range(0, width - side + 1, side)
    ]
    return [
        (x, y)
        for x, y in corners
        if tissue_share(_window(small, x // _LOOK_STEP, y // _LOOK_STEP, look)) >= _MIN_TISSUE
    ]


def _return_pixels(pixels: ImageU8) -> ImageU8:
    return pixels


def _window(pixels: ImageU8, left: int, top: int, side: int) -> ImageU8:
    return np.ascontiguousarray(pixels[top : top + side, left : left + side])


def _read_region(section: LargeRegion) -> RegionImage:
    return RegionImage(section.read(), None, READ_MPP)


def _read_rearranged(section: LargeRegion, seed: tuple[int, int]) -> RegionImage:
    return RegionImage(rearranged(section.read(), np.random.default_rng(seed)), None, READ_MPP)


def _read_half(section: LargeRegion, number: int) -> RegionImage:
    """Left, right, upper or lower half, in turn."""
    pixels = section.read()
    middle = pixels.shape[0] // 2
    halves = (pixels[:, :middle], pixels[:, middle:], pixels[:middle], pixels[middle:])
    return RegionImage(np.ascontiguousarray(halves[number % 4]), None, READ_MPP)


def _read_occluded(section: LargeRegion, number: int) -> RegionImage:
    """Region without a disc of a third of its area at a random corner of a smaller window."""
    pixels = np.ascontiguousarray(section.read()[_SHIFT_PX:, _SHIFT_PX:])
    height, width = pixels.shape[:2]
    corner = np.random.default_rng((number, 1)).integers(2, size=2) * (width, height)
    # A quarter of the disc is inside the window.
    radius = float(np.sqrt(4 * _OCCLUDED * width * height / np.pi))
    visible = box(0, 0, width, height).difference(Point(*corner.tolist()).buffer(radius))
    return RegionImage(pixels, visible, READ_MPP)
