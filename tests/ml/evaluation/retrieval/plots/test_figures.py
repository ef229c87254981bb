"""Plots of a retrieval."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from shapely.geometry import box

from ml.evaluation.retrieval.manifest import RoiRecord
from ml.evaluation.retrieval.plots.figures import write_plots
from ml.evaluation.retrieval.protocols import RetrievalOptions

pytest.importorskip("matplotlib")


def test_three_plots_are_written(tmp_path):
    rng, records = np.random.default_rng(0), []
    for i in range(6):
        path = tmp_path / f"{i}.png"
        cv2.imwrite(str(path), rng.integers(0, 255, (60, 80, 3)).astype(np.uint8))
        region = box(10, 10, 60, 50) if i % 2 else None
        records.append(RoiRecord(path, f"P{i}", "ab"[i % 2], None, region))
    vectors = {"mine": rng.random((6, 4), np.float32), "other": rng.random((6, 3), np.float32)}
    names = write_plots(tmp_path, records, vectors, "mine", RetrievalOptions())
    assert names == ["precision-recall.png", "queries.png"]
    for name in names:
        assert min(cv2.imread(str(tmp_path / name)).shape[:2]) > 300
