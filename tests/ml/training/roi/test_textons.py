"""Learning a dictionary on locally normalised stains."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from ml.errors import BadInputError
from ml.networks.textons import TextonConfig
from ml.roi.encoders.textons import load_textons
from ml.training.roi.textons import TextonFitConfig, fit_textons
from ml.training.roi.tiles import Tile

SMALL = TextonConfig(words=4, scales_px=(1.0,), stride_px=8)


@pytest.fixture
def tiles(tmp_path):
    rng = np.random.default_rng(0)
    out = []
    for number in range(4):
        coarse = rng.integers(60, 240, (16, 16, 3)).astype(np.uint8)
        path = tmp_path / f"{number}.png"
        Image.fromarray(np.kron(coarse, np.ones((8, 8, 1), np.uint8))).save(path)
        out.append(Tile(path, f"p{number % 2}", ""))
    blank = tmp_path / "blank.png"
    Image.fromarray(np.full((128, 128, 3), 245, np.uint8)).save(blank)
    return [*out, Tile(blank, "p2", "")]


def test_a_dictionary_is_written_and_deterministic(tiles, tmp_path):
    fit = TextonFitConfig(points=40, rounds=3)
    first, again = (
        fit_textons(tiles, config=SMALL, fit=fit, out=tmp_path / name)
        for name in ("a.safetensors", "b.safetensors")
    )
    assert torch.equal(first.network.words, again.network.words)
    assert torch.equal(load_textons(tmp_path / "a.safetensors").network.words, first.network.words)
    assert torch.isfinite(first.network.words).all()


def test_blank_tiles_are_not_trained_on(tiles):
    fit = TextonFitConfig(points=40, rounds=3)
    with_blank, without = (fit_textons(t, config=SMALL, fit=fit) for t in (tiles, tiles[:4]))
    assert torch.equal(with_blank.network.words, without.network.words)


def test_progress_is_reported(tiles):
    seen = []
    fit_textons(
        tiles,
        config=SMALL,
        fit=TextonFitConfig(points=9, rounds=1),
        progress=lambda *a: seen.append(a),
    )
    assert seen[-1] == (5, 5, "textons: measuring")


def test_tiles_without_tissue_raise_an_error(tiles):
    with pytest.raises(BadInputError, match="in 1 tile"):
        fit_textons(tiles[4:], config=SMALL)
    with pytest.raises(BadInputError, match="in 0 tile"):
        fit_textons([], config=SMALL)
