"""Stain shifts, on an encoder whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from ml.evaluation.retrieval.protocols import RetrievalOptions
from ml.evaluation.retrieval.stains.shift import shifted_scores, shifted_vectors, stain_shifted


def test_no_strength_gives_the_image_back_and_some_does_not():
    image = np.random.default_rng(0).integers(0, 240, (20, 20, 3)).astype(np.uint8)
    same = stain_shifted(image, np.random.default_rng(0), strength=0)
    assert np.abs(same.astype(int) - image).max() <= 1
    shifted = stain_shifted(image, np.random.default_rng(0))
    assert np.abs(shifted.astype(int) - image).mean() > 3
    assert (shifted == stain_shifted(image, np.random.default_rng(0))).all()


def test_a_stain_shift_lowers_what_looks_at_colour_only(records, mean_grey):
    vectors = shifted_vectors(mean_grey, records, draws=4, strength=3.0)
    scores = shifted_scores(vectors, records, RetrievalOptions())
    assert scores["map_clean"] == pytest.approx(1)
    assert scores["map_shifted"] < 1 and scores["drop_percent"] > 0
    assert len(scores["draws"]) == 4
    same = shifted_vectors(mean_grey, records, draws=1, strength=0.0)
    none = shifted_scores(same, records, RetrievalOptions())
    assert abs(none["drop_percent"]) < 1e-9 and none["p_at_1_self"] == 1
