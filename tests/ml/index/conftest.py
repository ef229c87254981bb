"""Simulated FAISS on a GPU, and fixtures of index engines."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest

from ml.gpu import VARIABLE
from ml.index import rows
from ml.index.files import engine as engine_module
from ml.index.files import snapshot
from ml.index.files.segments import inverted_lists, segment
from ml.index.files.segments.gpu_vectors import GpuVectors
from ml.index.milvus.engine import MilvusConfig, drop_indexes, open_milvus
from ml.types import ArrayF32, ArrayI64
from tests.milvus_server import RunningMilvus


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


def simulated_gpu_vectors(vectors: ArrayF32) -> GpuVectors:
    """GPU vectors without a GPU."""
    return GpuVectors(RoughIndex(vectors), vectors)


class _Config:
    device = -1


class _Resources:
    def setTempMemory(self, nbytes: int) -> None:
        assert nbytes > 0


def faiss_with_gpu(
    monkeypatch: pytest.MonkeyPatch, make_index: Callable[[int], Any] = faiss.IndexFlatL2
) -> list[int]:
    """Simulate FAISS with a GPU, on the CPU.

    Returns:
        Dimensions of the indexes created there.
    """
    dims: list[int] = []

    def flat(resources: _Resources, dim: int, config: _Config) -> Any:
        assert isinstance(resources, _Resources) and config.device == 0
        dims.append(dim)
        return make_index(dim)

    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1)
    for name, fake in {
        "StandardGpuResources": _Resources,
        "GpuIndexFlatConfig": _Config,
        "GpuIndexFlatL2": flat,
    }.items():
        monkeypatch.setattr(faiss, name, fake, raising=False)
    return dims


MILVUS = pytest.param("milvus", marks=[pytest.mark.services, pytest.mark.timeout(300)])
IN_FILES = ["processor", "gpu", "lists", "lists-by-gpu", "parts"]


@pytest.fixture(params=[*IN_FILES, MILVUS])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Search method: scan, simulated GPU, inverted lists of 8 bits, or a Milvus server.

    "lists" and "parts" use inverted lists for few rows, and visit every list. "parts" creates a
    subset for each set of permitted ids. "lists-by-gpu" creates the lists on a simulated GPU.
    """
    if request.param == "milvus":
        return "milvus"
    if request.param == "gpu":
        read = segment.read_segment

        def all_on_gpu(folder: Path, *, dim: int, gpu_above: int) -> segment.Segment:
            return read(folder, dim=dim, gpu_above=0)

        monkeypatch.setattr(segment, "vectors_on_gpu", simulated_gpu_vectors)
        monkeypatch.setattr(snapshot, "read_segment", all_on_gpu)
    elif request.param != "processor":
        lists_for_few(monkeypatch, by_gpu=request.param == "lists-by-gpu")
        if request.param == "parts":
            monkeypatch.setattr(rows, "SUBSET_SHARE", 1)
            monkeypatch.setattr(rows, "_USES_BEFORE_SUBSET", 1)
    return str(request.param)


def lists_for_few(
    monkeypatch: pytest.MonkeyPatch, *, recall: float = 2.0, by_gpu: bool = False
) -> None:
    """Use inverted lists for bases of any size; a recall above 1 visits every list.

    ``by_gpu``: Create them on a simulated GPU.
    """
    write = segment.write_segment
    if by_gpu:
        faiss_with_gpu(monkeypatch)

    def with_lists(*args: Any, **kwargs: Any) -> None:
        write(*args, **kwargs | {"ivf_above": 0, "gpu_above": 0 if by_gpu else 10**9})

    monkeypatch.setattr(engine_module, "write_segment", with_lists)
    monkeypatch.setattr(segment, "MAX_SCANNED_ROWS", 0)
    monkeypatch.setattr(inverted_lists, "MAX_SCANNED_ROWS", 0)
    monkeypatch.setattr(segment, "_MAX_EXACT_ROWS", 0)
    monkeypatch.setattr(inverted_lists, "_RECALL", recall)


@pytest.fixture
def opens_milvus(milvus: RunningMilvus) -> Iterator[Callable[..., Any]]:
    """Opens an index on the server; dropped afterwards."""
    group = f"test-{uuid.uuid4()}"

    def opened(dim: int = 6, *, tag: str = "", name: str = "one", config: Any = None) -> Any:
        config = config if isinstance(config, MilvusConfig) else None
        return open_milvus(milvus.server, f"{group}/{name}", dim, tag=tag, config=config)

    yield opened
    drop_indexes(milvus.server, group)
