"""Tiles by a table: which are taken, and that patients count alike."""

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


def test_only_rows_with_the_values_asked_for_are_taken(tmp_path):
    index = write(tmp_path, ["a.png,train,p1,liver", "b.png,kept,p2,skin", "c.png,train,p3,"])
    tiles = read_tiles(index, {"use": "train"})
    assert tiles == (Tile(tmp_path / "a.png", "p1", "liver"), Tile(tmp_path / "c.png", "p3", ""))


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(BadInputError, match="no such table"):
        read_tiles(tmp_path / "none.csv", {})
    index = write(tmp_path, ["a.png,train,p1,liver"])
    with pytest.raises(BadInputError, match="column 'stain' is missing"):
        read_tiles(index, {"stain": "H&E"})
    with pytest.raises(BadInputError, match="no row with use=test"):
        read_tiles(index, {"use": "test"})
    (tmp_path / "a.png").unlink()
    with pytest.raises(BadInputError, match=r"'a\.png' is not there"):
        read_tiles(index, {})


def test_of_each_patient_no_more_than_asked_the_same_every_time():
    tiles = [Tile(Path(f"{i}.png"), "many" if i else "few", "") for i in range(9)]
    chosen = balanced(tiles, 3, seed=0)
    assert [tile.patient for tile in chosen] == ["few", "many", "many", "many"]
    assert chosen == balanced(tiles, 3, seed=0)
    assert len(set(chosen)) == 4
