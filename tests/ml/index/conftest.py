"""A stand-in for FAISS on a GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ml.index import segment, snapshot
from ml.index.gpu import GpuRows
from ml.types import ArrayF32, ArrayI64


class RoughIndex:
    """A flat index that rounds as a GPU does: squared lengths less twice the product, in float32.

    It knows no selectors, returns rows of equal distance in no order, and counts its searches.
    """

    def __init__(self, vectors: ArrayF32) -> None:
        self.vectors, self.searches = vectors, 0

    def search(self, queries: ArrayF32, k: int) -> tuple[ArrayF32, ArrayI64]:
        self.searches += 1
        (q,) = queries
        squared = (self.vectors**2).sum(1) + (q**2).sum() - 2 * self.vectors @ q
        mixed = np.random.default_rng(0).permutation(len(squared))
        rows = mixed[np.argsort(squared[mixed], kind="stable")][:k]
        return squared[rows][None].astype(np.float32), rows[None]


def standing_in(vectors: ArrayF32) -> GpuRows:
    """Rows "on a GPU" that is none."""
    return GpuRows(RoughIndex(vectors), vectors)


@pytest.fixture(params=["processor", "gpu"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where bases are searched: on the processor, or first on a GPU (stood in for)."""
    if request.param == "gpu":
        read = segment.read_segment

        def all_on_gpu(folder: Path, *, dim: int, gpu_above: int) -> segment.Segment:
            return read(folder, dim=dim, gpu_above=0)

        monkeypatch.setattr(segment, "rows_on_gpu", standing_in)
        monkeypatch.setattr(snapshot, "read_segment", all_on_gpu)
    return str(request.param)
