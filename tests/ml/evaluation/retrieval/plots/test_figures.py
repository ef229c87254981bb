"""Plots: drawn for any data set; the map keeps neighbours together."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from scipy.spatial.distance import cdist
from shapely.geometry import box

from ml.evaluation.retrieval.manifest import RoiRecord
from ml.evaluation.retrieval.plots.figures import write_plots
from ml.evaluation.retrieval.plots.tsne import tsne
from ml.evaluation.retrieval.protocols import RetrievalOptions

pytest.importorskip("matplotlib")


def test_three_pictures_are_written(tmp_path):
    rng, records = np.random.default_rng(0), []
    for i in range(6):
        path = tmp_path / f"{i}.png"
        cv2.imwrite(str(path), rng.integers(0, 255, (60, 80, 3)).astype(np.uint8))
        region = box(10, 10, 60, 50) if i % 2 else None
        records.append(RoiRecord(path, f"P{i}", "ab"[i % 2], None, region))
    vectors = {"mine": rng.random((6, 4), np.float32), "other": rng.random((6, 3), np.float32)}
    names = write_plots(tmp_path, records, vectors, "mine", RetrievalOptions())
    assert names == ["precision-recall.png", "queries.png", "map.png"]
    for name in names:
        assert min(cv2.imread(str(tmp_path / name)).shape[:2]) > 300


def test_the_map_keeps_clusters_apart_and_is_repeatable():
    rng = np.random.default_rng(1)
    centres = rng.normal(0, 10, (3, 16))
    vectors = np.concatenate([c + rng.normal(0, 0.3, (20, 16)) for c in centres]).astype(np.float32)
    found = tsne(vectors, seed=0)
    of = np.repeat(np.arange(3), 20)
    nearest = np.argsort(cdist(found, found) + np.eye(60) * 1e9, axis=1)[:, :5]
    assert (of[nearest] == of[:, None]).mean() > 0.98
    assert np.isfinite(found).all() and (found == tsne(vectors, seed=0)).all()


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_handful_of_regions_can_be_mapped(count):
    points = np.random.default_rng(0).random((count, 3), np.float32)
    assert tsne(points, seed=0).shape == (count, 2)
