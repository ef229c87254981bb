"""Cached features for the metric, by patient and look."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from ml.errors import BadInputError
from ml.training.roi.encoder.tissue import _patches, load_or_measure
from ml.training.roi.patches.blocks import make_block
from ml.types import no_progress


class MeanColour:
    """Stub of a patch encoder."""

    name, batch, dim, uses_stains = "colour", 1, 3, False
    scale, alike = np.ones(3, np.float32), np.zeros(3, np.bool_)

    def __init__(self):
        self.seen = 0

    def encode(self, patches, stains):
        self.seen += len(patches)
        return np.stack([patch.reshape(-1, 3).mean(axis=0) for patch in patches]).astype("f4")


def measure(atlas, cache, encoder, **values):
    known = {"looks": 3, "stain": 0.3, "seed": 0, "progress": no_progress, **values}
    return load_or_measure(atlas.parent, atlas, cache, encoder=encoder, **known)


def test_every_patient_has_patches_of_every_stain_variant(atlas, tmp_path):
    measurement = measure(atlas, tmp_path / "f.npz", MeanColour())
    assert [slab.shape for slab in measurement] == [(3, 1, 3), (3, 2, 3), (3, 1, 3)]
    for slab in measurement:
        assert not np.allclose(slab[0], slab[1]) and not np.allclose(slab[1], slab[2])


def test_cached_features_are_read_without_computing_them(atlas, tmp_path):
    first = measure(atlas, tmp_path / "f.npz", MeanColour())
    idle = MeanColour()
    again = measure(atlas, tmp_path / "f.npz", idle)
    assert idle.seen == 0 and len(first) == len(again)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))


def test_the_same_seed_repeats_the_measurement_and_stops_leave_no_files(atlas, tmp_path):
    first, two = (measure(atlas, tmp_path / n, MeanColour()) for n in ("a.npz", "b.npz"))
    assert all(np.array_equal(a, b) for a, b in zip(first, two, strict=True))

    def stop(done, total, phase):
        if phase == "features of tissue":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(atlas, tmp_path / "c.npz", MeanColour(), progress=stop)
    assert not (tmp_path / "c.npz").exists()


def test_without_the_table_there_is_one_clear_error(tmp_path):
    with pytest.raises(BadInputError, match=r"index\.csv"):
        measure(tmp_path / "index.csv", tmp_path / "f.npz", MeanColour())


def test_patches_are_cut_at_1_um_and_coarser_blocks_are_not_enlarged(tissue):
    rng = np.random.default_rng(0)
    block = make_block(tissue(508, 508), 0.5)
    for mpp, count in ((0.43, 0), (0.5, 1), (0.9, 2), (1.0, 2), (1.8, 2)):
        patches = _patches(dataclasses.replace(block, mpp=mpp), rng)
        assert [patch.shape for patch in patches] == [(224, 224, 3)] * count
