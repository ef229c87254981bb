"""Tiles of many slides, with patients and labels by a table."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ml.errors import BadInputError

COLUMNS = ("file", "patient")


@dataclass(frozen=True, slots=True)
class Tile:
    """One row of the table.

    Attributes:
        path: of the image.
        label: empty if there is none.
    """

    path: Path
    patient: str
    label: str


def read_tiles(index: Path, where: Mapping[str, str]) -> tuple[Tile, ...]:
    """Read the tiles of a table whose columns have these values.

    Args:
        index: CSV with the columns ``file`` (relative to the table) and ``patient``, perhaps
            ``label``.
        where: column to the value it must have.
    Raises:
        BadInputError: no such table, a column or an image is missing, or no row is left.
    """
    if not index.is_file():
        raise BadInputError(f"{index}: no such table of tiles")
    with index.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        missing = sorted({*COLUMNS, *where} - set(reader.fieldnames or ()))
        if missing:
            raise BadInputError(f"{index.name}: column {missing[0]!r} is missing")
        rows = [row for row in reader if all(row[key] == value for key, value in where.items())]
    if not rows:
        conditions = ", ".join(f"{key}={value}" for key, value in where.items())
        raise BadInputError(f"{index.name}: no row with {conditions}")
    tiles = tuple(
        Tile(index.parent / row["file"], row["patient"], row.get("label") or "") for row in rows
    )
    for tile in tiles:
        if not tile.path.is_file():
            raise BadInputError(f"{index.name}: image {tile.path.name!r} is not there")
    return tiles


def balanced(tiles: Sequence[Tile], max_per_patient: int, *, seed: int) -> tuple[Tile, ...]:
    """Draw at most ``max_per_patient`` tiles of every patient."""
    rng = np.random.default_rng((seed, 5))
    of_patient: dict[str, list[Tile]] = defaultdict(list)
    for tile in tiles:
        of_patient[tile.patient].append(tile)
    return tuple(
        patient_tiles[i]
        for _, patient_tiles in sorted(of_patient.items())
        for i in sorted(rng.permutation(len(patient_tiles))[:max_per_patient].tolist())
    )
