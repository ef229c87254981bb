"""Tiles by a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from ml.errors import BadInputError
from ml.training.roi.tiles import Tile, balanced, read_tiles


def write(folder: Path, rows: list[str], head: str = "file,use,patient,label") -> Path:
    for row in rows:
        (folder / row.split(",")[0]).touch()
    index = folder / "index.csv"
    index.write_text("\n".join([head, *rows]) + "\n")
    return index


def test_only_rows_with_the_requested_values_are_read(tmp_path):
    index = write(tmp_path, ["a.png,train,p1,liver", "b.png,kept,p2,skin", "c.png,train,p3,"])
    tiles = read_tiles(index, {"use": "train"})
    assert tiles == (Tile(tmp_path / "a.png", "p1", "liver"), Tile(tmp_path / "c.png", "p3", ""))


def test_missing_parts_are_named(tmp_path):
    with pytest.raises(BadInputError, match="table"):
        read_tiles(tmp_path / "none.csv", {})
    index = write(tmp_path, ["a.png,train,p1,liver"])
    with pytest.raises(BadInputError, match="'stain'"):
        read_tiles(index, {"stain": "H&E"})
    with pytest.raises(BadInputError, match="use=test"):
        read_tiles(index, {"use": "test"})
    (tmp_path / "a.png").unlink()
    with pytest.raises(BadInputError, match=r"'a\.png'"):
        read_tiles(index, {})


def test_the_number_of_tiles_of_a_patient_is_limited_and_repeatable():
    tiles = [Tile(Path(f"{i}.png"), "many" if i else "few", "") for i in range(9)]
    chosen = balanced(tiles, 3, seed=0)
    assert [tile.patient for tile in chosen] == ["few", "many", "many", "many"]
    assert chosen == balanced(tiles, 3, seed=0)
    assert len(set(chosen)) == 4
