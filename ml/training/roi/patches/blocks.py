"""Blocks of tissue in memory, with mip levels, from which the views of examples are cut."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from ml.errors import BadInputError
from ml.imaging.slides.slide import open_slide
from ml.imaging.tissue.optical_density import optical_density
from ml.types import ArrayBool, ArrayF32, ArrayI64, ImageU8, Progress

TRAINING_USE, HELD_OUT_USE = "train", "dev-eval"
"""Uses of the atlas' tiles: training, and held-out patients."""
BLOCK_PX = 508
"""Side of a block: two by two tiles of the atlas."""
_OVERLAP_PX = 1
"""Deep Zoom tiles repeat one pixel of their neighbours on every side."""
_MIP_LEVELS = 4  # full size and three halvings: coarse views are cut without aliasing
CELLS = 16
"""Number of cells along a block's side, each with tissue or without."""
_TISSUE_OD = 0.12
"""Least mean density of tissue; glass and fat droplets are below."""
_PALE_OD = 0.04
"""Least density above that of the glass, in blocks with too little tissue by ``_TISSUE_OD``."""
_GLASS_OD = 0.02
"""Largest density of glass in pale blocks, which may show none."""
_MIN_TISSUE = 0.25
"""Least share of tissue of a block."""
_COLUMNS = ("file", "use", "patient", "block", "level", "path", "mpp_est")
_ORGAN_COLUMNS = ("organ", "stain", "slide")
_LEVEL_MPP = {"0": 0.5, "-1": 0.8, "-2": 1.6}
"""Microns per pixel by level, for tiles without an estimate in the atlas."""
_COLOUR_PIXELS = 4000
"""Number of pixels of a block on which its patient's colours are measured."""
_READERS = 8  # threads; what they read is used in the order of the table


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
class OrganRegion:
    """One region of the atlas whose organ is known.

    Attributes:
        pixels: (508, 508, 3) uint8.
        mpp: microns per pixel, perhaps wrong by a factor of two.
    """

    pixels: ImageU8
    mpp: float
    organ: str
    patient: str
    slide: str


@dataclass(frozen=True, slots=True)
class Blocks:
    """All blocks, by patient.

    Attributes:
        of_patient: for each patient its blocks.
        colour: (P, 3, 3) float32, root of the second moment of each patient's optical densities
            about zero (tissue only), by which stains are exchanged.
        organs: organ of each patient by the table of tiles, "" if unknown.
    """

    of_patient: tuple[tuple[Block, ...], ...]
    colour: ArrayF32
    organs: tuple[str, ...]

    def __len__(self) -> int:
        return sum(len(blocks) for blocks in self.of_patient)


def read_blocks(
    data: Path,
    atlas: Path | None,
    slides: Sequence[tuple[str, str, float]],
    progress: Progress,
    *,
    use: str = TRAINING_USE,
    max_mpp: float = math.inf,
) -> Blocks:
    """Read every source.

    Args:
        data: folder they are in.
        atlas: table whose rows of that ``use`` are tiles, four a block; None for none.
        slides: (file or folder, patient, microns per pixel to take where the file says none).
        max_mpp: microns per pixel of the coarsest blocks that are read.
    Raises:
        BadInputError: a source or a column of the table is missing, or there is no tissue in any.
    """
    of_patient: dict[str, list[Block]] = defaultdict(list)
    organs: dict[str, str] = {}
    if atlas is not None:
        rows = _atlas_rows(atlas, use)
        organs = {row["patient"]: _organ(row) for row in rows}
        for patient, block in _atlas_blocks(atlas.parent, rows, max_mpp, progress):
            of_patient[patient].append(block)
    for name, patient, mpp in slides:
        cut = _slide_blocks(data / name, mpp, progress)
        of_patient[patient] += [block for block in cut if block.mpp <= max_mpp]
    usable = {patient: tuple(blocks) for patient, blocks in sorted(of_patient.items()) if blocks}
    if not usable:
        raise BadInputError("no source holds tissue to train on")
    colour = np.stack([_colour(blocks) for blocks in usable.values()])
    return Blocks(tuple(usable.values()), colour, tuple(organs.get(name, "") for name in usable))


def read_patients(
    atlas: Path, *, use: str, max_mpp: float = 1.0, progress: Progress
) -> dict[str, tuple[Block, ...]]:
    """Read the blocks of a table of tiles by the name of their patient; see ``read_blocks``.

    Raises:
        BadInputError: a column is missing, or the table has no tissue of that use.
    """
    of_patient: dict[str, list[Block]] = defaultdict(list)
    for patient, block in _atlas_blocks(atlas.parent, _atlas_rows(atlas, use), max_mpp, progress):
        of_patient[patient].append(block)
    if not of_patient:
        raise BadInputError(f"{atlas.name}: no tissue of use {use!r}")
    return {patient: tuple(blocks) for patient, blocks in sorted(of_patient.items())}


def read_organ_regions(
    atlas: Path, *, use: str, stain: str, mpp: tuple[float, float], progress: Progress
) -> Iterator[OrganRegion]:
    """Read the regions of a table of tiles whose organ at least two patients have.

    Args:
        stain: of the regions.
        mpp: Least and largest microns per pixel.
    Raises:
        BadInputError: the table or a column is missing.
    """
    rows = [
        row
        for row in _atlas_rows(atlas, use, (*_COLUMNS, *_ORGAN_COLUMNS))
        if row["stain"] == stain and _organ(row) and mpp[0] <= _mpp(row) <= mpp[1]
    ]
    patients: dict[str, set[str]] = defaultdict(set)
    tiles: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        patients[_organ(row)].add(row["patient"])
        tiles[row["block"] or row["file"]].append(row)
    blocks = [four for _, four in sorted(tiles.items()) if len(patients[_organ(four[0])]) > 1]
    for number, four in enumerate(blocks, 1):
        first = four[0]
        pixels = _stitch(atlas.parent, four)
        if pixels is not None:
            yield OrganRegion(pixels, _mpp(first), _organ(first), first["patient"], first["slide"])
        progress(number, len(blocks), "reading the atlas")


def make_block(pixels: ImageU8, mpp: float) -> Block | None:
    """Make a block of (H, W, 3) uint8; None if it holds too little tissue."""
    tissue = _tissue(optical_density(pixels).mean(axis=2))
    if tissue.mean() < _MIN_TISSUE:
        return None
    mips = [pixels]
    for _ in range(_MIP_LEVELS - 1):
        last = mips[-1]
        size = (max(1, last.shape[1] // 2), max(1, last.shape[0] // 2))
        mips.append(np.asarray(cv2.resize(last, size, interpolation=cv2.INTER_AREA), np.uint8))
    return Block(tuple(mips), mpp, _cells(tissue))


def _tissue(od: ArrayF32) -> ArrayBool:
    """Mask of tissue by density; tissue of pale slides is mostly below ``_TISSUE_OD``."""
    tissue = od > _TISSUE_OD
    if tissue.mean() >= _MIN_TISSUE:
        return np.asarray(tissue)
    glass = min(float(np.quantile(od, 0.02)), _GLASS_OD)
    return np.asarray(od > glass + _PALE_OD)


def _cells(tissue: ArrayBool) -> ArrayI64:
    share = cv2.resize(tissue.astype(np.float32), (CELLS, CELLS), interpolation=cv2.INTER_AREA)
    y, x = np.nonzero(np.asarray(share) > 0.5)
    if not x.size:
        y, x = np.unravel_index([int(np.argmax(share))], share.shape)
    return np.stack([x, y], axis=1).astype(np.int64)


def _atlas_rows(path: Path, use: str, columns: Sequence[str] = _COLUMNS) -> list[dict[str, str]]:
    if not path.is_file():
        raise BadInputError(f"{path.name}: no such table of tiles")
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        missing = sorted(set(columns) - set(reader.fieldnames or ()))
        if missing:
            raise BadInputError(f"{path.name}: column {missing[0]!r} is missing")
        return [row for row in reader if row["use"] == use]


def _organ(row: dict[str, str]) -> str:
    """Organ of a row; "" if it is missing or doubtful."""
    organ = row.get("organ") or ""
    return "" if "?" in organ else organ


def _atlas_blocks(
    folder: Path, rows: Sequence[dict[str, str]], max_mpp: float, progress: Progress
) -> Iterator[tuple[str, Block]]:
    tiles: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        tiles[row["block"] or row["file"]].append(row)
    fine_tiles = [four for _, four in sorted(tiles.items()) if _mpp(four[0]) <= max_mpp]

    def read(four: list[dict[str, str]]) -> Block | None:
        pixels = _stitch(folder, four)
        return make_block(pixels, _mpp(four[0])) if pixels is not None else None

    with ThreadPoolExecutor(_READERS) as readers:
        for number, (four, block) in enumerate(
            zip(fine_tiles, readers.map(read, fine_tiles), strict=True), 1
        ):
            if block is not None:
                yield four[0]["patient"], block
            progress(number, len(fine_tiles), "reading the atlas")


def _mpp(row: dict[str, str]) -> float:
    return float(row["mpp_est"] or _LEVEL_MPP[row["level"]])


def _stitch(folder: Path, tiles: Sequence[dict[str, str]]) -> ImageU8 | None:
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
        slide_mpp = info.mpp_x or mpp
        if min(info.width_px, info.height_px) < BLOCK_PX:
            pixels = slide.read_scaled((0, 0), (info.width_px, info.height_px), 1.0)
            small = make_block(np.asarray(pixels), slide_mpp)
            return [small] if small is not None else []
        for scale in (1, 2):
            side = BLOCK_PX * scale
            for y in range(0, info.height_px - side + 1, side):
                for x in range(0, info.width_px - side + 1, side):
                    pixels = slide.read_scaled((x, y), (side, side), float(scale))
                    block = make_block(np.asarray(pixels), slide_mpp * scale)
                    if block is not None:
                        blocks.append(block)
                progress(y, info.height_px, f"reading {path.stem}")
    return blocks


def _colour(blocks: Sequence[Block]) -> ArrayF32:
    """(3, 3): symmetric root of the second moment of the tissue's optical densities."""
    rng = np.random.default_rng(0)
    step = max(1, len(blocks) // 32)
    od = np.concatenate([optical_density(block.mips[1].reshape(-1, 3)) for block in blocks[::step]])
    od = od[_tissue(od.mean(axis=1))]
    od = od[rng.integers(len(od), size=_COLOUR_PIXELS)].astype(np.float64)
    value, vector = np.linalg.eigh(od.T @ od / len(od) + 1e-5 * np.eye(3))
    return ((vector * np.sqrt(value)) @ vector.T).astype(np.float32)
