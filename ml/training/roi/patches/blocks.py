"""Blocks of tissue to train patches on: square pieces of many slides, in memory, with mip levels.

A block is what two views of one training example are cut from. Sources differ in how much they
hold; blocks carry the patient, so that each patient can count alike.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from ml.errors import BadInputError
from ml.imaging.slides import open_slide
from ml.roi.stain import optical_density
from ml.types import ArrayBool, ArrayF32, ArrayI64, ImageU8, Progress

TRAINED_ON, WATCHED = "train", "dev-eval"
"""Uses of the atlas' tiles: what is learned from, and patients that trainings only look at."""
BLOCK_PX = 508
"""Four tiles of the atlas side by side; what other sources are cut into."""
_OVERLAP_PX = 1
"""Deep Zoom tiles repeat one pixel of their neighbours on every side."""
_MIP_LEVELS = 4  # full size and three halvings: coarse views are cut without aliasing
CELLS = 16
"""Cells along a block's side in which tissue is looked for."""
_TISSUE_OD = 0.12
"""A pixel at least this dense on average is tissue: glass and fat droplets lie below."""
_MIN_TISSUE = 0.25
"""Share of tissue a block needs."""
_COLUMNS = ("file", "use", "patient", "block", "level", "path", "mpp_est")
_LEVEL_MPP = {"0": 0.5, "-1": 0.8, "-2": 1.6}
"""Where the atlas gives no estimate: the middle of the estimates of that level."""
_COLOUR_PIXELS = 4000
"""Pixels of a block that its patient's colours are measured on."""


@dataclass(frozen=True, slots=True)
class Block:
    """One square piece of tissue.

    Attributes:
        mips: (H, W, 3), then half and half again, uint8.
        mpp: microns per pixel of ``mips[0]``, perhaps wrong by a factor of two.
        cells: (N, 2) int64, x and y of the cells that hold tissue, in 16ths of the side.
    """

    mips: tuple[ImageU8, ...]
    mpp: float
    cells: ArrayI64


@dataclass(frozen=True, slots=True)
class Blocks:
    """All blocks, by patient.

    Attributes:
        of_patient: for each patient its blocks.
        colour: (P, 3, 3) float32, root of the second moment of each patient's optical densities
            about zero (tissue only): what two patients' stains are exchanged by.
    """

    of_patient: tuple[tuple[Block, ...], ...]
    colour: ArrayF32

    def __len__(self) -> int:
        return sum(len(blocks) for blocks in self.of_patient)


def read_blocks(
    data: Path,
    atlas: Path | None,
    slides: Sequence[tuple[str, str, float]],
    progress: Progress,
    *,
    use: str = TRAINED_ON,
) -> Blocks:
    """Read every source.

    Args:
        data: folder they are in.
        atlas: table whose rows of that ``use`` are tiles, four a block; None for none.
        slides: (file or folder, patient, microns per pixel to take where the file says none).
    Raises:
        BadInputError: a source or a column of the table is missing, or there is no tissue in any.
    """
    found: dict[str, list[Block]] = defaultdict(list)
    if atlas is not None:
        for patient, block in _atlas_blocks(atlas, use, progress):
            found[patient].append(block)
    for name, patient, mpp in slides:
        found[patient] += _slide_blocks(data / name, mpp, progress)
    kept = {patient: tuple(blocks) for patient, blocks in sorted(found.items()) if blocks}
    if not kept:
        raise BadInputError("no source holds tissue to train on")
    colour = np.stack([_colour(blocks) for blocks in kept.values()])
    return Blocks(tuple(kept.values()), colour)


def make_block(pixels: ImageU8, mpp: float) -> Block | None:
    """A block of (H, W, 3) uint8, or None if it holds too little tissue."""
    tissue = optical_density(pixels).mean(axis=2) > _TISSUE_OD
    if tissue.mean() < _MIN_TISSUE:
        return None
    mips = [pixels]
    for _ in range(_MIP_LEVELS - 1):
        last = mips[-1]
        size = (max(1, last.shape[1] // 2), max(1, last.shape[0] // 2))
        mips.append(np.asarray(cv2.resize(last, size, interpolation=cv2.INTER_AREA), np.uint8))
    return Block(tuple(mips), mpp, _cells(tissue))


def _cells(tissue: ArrayBool) -> ArrayI64:
    share = cv2.resize(tissue.astype(np.float32), (CELLS, CELLS), interpolation=cv2.INTER_AREA)
    y, x = np.nonzero(np.asarray(share) > 0.5)
    if not x.size:
        y, x = np.unravel_index([int(np.argmax(share))], share.shape)
    return np.stack([x, y], axis=1).astype(np.int64)


def _atlas_blocks(path: Path, use: str, progress: Progress) -> Iterator[tuple[str, Block]]:
    if not path.is_file():
        raise BadInputError(f"{path.name}: no such table of tiles")
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        missing = sorted(set(_COLUMNS) - set(reader.fieldnames or ()))
        if missing:
            raise BadInputError(f"{path.name}: column {missing[0]!r} is missing")
        rows = [row for row in reader if row["use"] == use]
    tiles: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        tiles[row["block"] or row["file"]].append(row)
    for done, (_, four) in enumerate(sorted(tiles.items()), 1):
        pixels = _stitched(path.parent, four)
        mpp = float(four[0]["mpp_est"] or _LEVEL_MPP[four[0]["level"]])
        block = make_block(pixels, mpp) if pixels is not None else None
        if block is not None:
            yield four[0]["patient"], block
        progress(done, len(tiles), "reading the atlas")


def _stitched(folder: Path, tiles: Sequence[dict[str, str]]) -> ImageU8 | None:
    """Stitch four Deep Zoom neighbours without their overlap.

    Args:
        tiles: Rows of the table: four neighbours, or one that is a whole region.
    Returns:
        (508, 508, 3) uint8; None if a tile is too small or cannot be read.
    """
    if len(tiles) == 1:
        region = cv2.imread(str(folder / tiles[0]["file"]), cv2.IMREAD_COLOR_RGB)
        is_whole = region is not None and region.shape[:2] == (BLOCK_PX, BLOCK_PX)
        return np.asarray(region, np.uint8) if is_whole else None
    half = BLOCK_PX // 2
    out = np.zeros((BLOCK_PX, BLOCK_PX, 3), np.uint8)
    places = [tuple(int(v) for v in Path(tile["path"]).stem.split("_")) for tile in tiles]
    left, top = (min(place[axis] for place in places) for axis in (0, 1))
    for tile, (column, row) in zip(tiles, places, strict=True):
        pixels = cv2.imread(str(folder / tile["file"]), cv2.IMREAD_COLOR_RGB)
        if pixels is None or min(pixels.shape[:2]) < half + 2 * _OVERLAP_PX:
            return None
        inner = pixels[_OVERLAP_PX : _OVERLAP_PX + half, _OVERLAP_PX : _OVERLAP_PX + half]
        y, x = (row - top) * half, (column - left) * half
        out[y : y + half, x : x + half] = inner
    return out


def _slide_blocks(path: Path, mpp: float, progress: Progress) -> list[Block]:
    """Blocks of a slide, or of every image of a folder, at its own scale and at half of it."""
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.suffix.lower() in {".jpg", ".jpeg", ".png"})
        return [block for file in files for block in _slide_blocks(file, mpp, progress)]
    if not path.is_file():
        raise BadInputError(f"source {path.name!r} is not in the data folder")
    blocks = []
    with open_slide(path) as slide:
        info = slide.info
        own = info.mpp_x or mpp
        if min(info.width_px, info.height_px) < BLOCK_PX:
            pixels = slide.read_scaled((0, 0), (info.width_px, info.height_px), 1.0)
            small = make_block(np.asarray(pixels), own)
            return [small] if small is not None else []
        for scale in (1, 2):
            side = BLOCK_PX * scale
            for y in range(0, info.height_px - side + 1, side):
                for x in range(0, info.width_px - side + 1, side):
                    pixels = slide.read_scaled((x, y), (side, side), float(scale))
                    block = make_block(np.asarray(pixels), own * scale)
                    if block is not None:
                        blocks.append(block)
                progress(y, info.height_px, f"reading {path.stem}")
    return blocks


def _colour(blocks: Sequence[Block]) -> ArrayF32:
    """(3, 3): symmetric root of the second moment of the tissue's optical densities."""
    rng = np.random.default_rng(0)
    step = max(1, len(blocks) // 32)
    od = np.concatenate([optical_density(block.mips[1].reshape(-1, 3)) for block in blocks[::step]])
    od = od[od.mean(axis=1) > _TISSUE_OD]
    od = od[rng.integers(len(od), size=_COLOUR_PIXELS)].astype(np.float64)
    value, vector = np.linalg.eigh(od.T @ od / len(od) + 1e-5 * np.eye(3))
    return ((vector * np.sqrt(value)) @ vector.T).astype(np.float32)
