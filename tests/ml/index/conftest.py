"""A stand-in for FAISS on a GPU."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest

from ml.gpu import VARIABLE
from ml.index import engine as engine_module
from ml.index import rows, snapshot
from ml.index.base import lists, segment
from ml.index.base.gpu import GpuRows
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


class _Config:
    device = -1


class _Resources:
    def setTempMemory(self, nbytes: int) -> None:
        assert nbytes > 0


def faiss_with_gpu(
    monkeypatch: pytest.MonkeyPatch, made: Callable[[int], Any] = faiss.IndexFlatL2
) -> list[int]:
    """FAISS as if it were built for a GPU and this machine had one, the processor in its place.

    Returns:
        the dimensions of the indexes that were made there.
    """
    dims: list[int] = []

    def flat(resources: _Resources, dim: int, config: _Config) -> Any:
        assert isinstance(resources, _Resources) and config.device == 0
        dims.append(dim)
        return made(dim)

    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1)
    for name, stand_in in {
        "StandardGpuResources": _Resources,
        "GpuIndexFlatConfig": _Config,
        "GpuIndexFlatL2": flat,
    }.items():
        monkeypatch.setattr(faiss, name, stand_in, raising=False)
    return dims


ENGINES = ["processor", "gpu", "lists", "lists-by-gpu", "parts", "qdrant"]
if os.environ.get("TESSERA_TEST_QDRANT_URL"):
    ENGINES.append("server")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How bases are searched: scanned, on a GPU first (stood in for), or by lists of 8 bits.

    "lists" and "parts" do for a few rows what is done for millions, and visit every list; "parts"
    makes lists of its own for each set of permitted ids, and those of "lists-by-gpu" are made on a
    GPU (stood in for). "qdrant" is its client's local mode,
    "server" one that runs at ``TESSERA_TEST_QDRANT_URL``.
    """
    if request.param in ("qdrant", "server"):
        return str(request.param)
    if request.param == "gpu":
        read = segment.read_segment

        def all_on_gpu(folder: Path, *, dim: int, gpu_above: int) -> segment.Segment:
            return read(folder, dim=dim, gpu_above=0)

        monkeypatch.setattr(segment, "rows_on_gpu", standing_in)
        monkeypatch.setattr(snapshot, "read_segment", all_on_gpu)
    elif request.param != "processor":
        lists_for_few(monkeypatch, by_gpu=request.param == "lists-by-gpu")
        if request.param == "parts":
            monkeypatch.setattr(rows, "PART_SHARE", 1)
            monkeypatch.setattr(rows, "_USES_BEFORE_PART", 1)
    return str(request.param)


def lists_for_few(
    monkeypatch: pytest.MonkeyPatch, *, recall: float = 2.0, by_gpu: bool = False
) -> None:
    """Write and use lists whatever the base's size; a recall above 1 visits every list.

    ``by_gpu``: they are made on a GPU that is stood in for.
    """
    write = segment.write_segment
    if by_gpu:
        faiss_with_gpu(monkeypatch)

    def with_lists(*args: Any, **kwargs: Any) -> None:
        write(*args, **kwargs | {"ivf_above": 0, "gpu_above": 0 if by_gpu else 10**9})

    monkeypatch.setattr(engine_module, "write_segment", with_lists)
    monkeypatch.setattr(segment, "SCAN_MOST", 0)
    monkeypatch.setattr(lists, "SCAN_MOST", 0)
    monkeypatch.setattr(segment, "_MEASURED_MOST", 0)
    monkeypatch.setattr(lists, "_RECALL", recall)


@pytest.fixture
def opens_qdrant(engine: str) -> Iterator[Callable[..., Any]]:
    """Opens an index by the client's local mode, or on the server that is named; dropped after."""
    pytest.importorskip("qdrant_client")
    from ml.index.qdrant import QdrantServer, drop_group, open_qdrant

    url = os.environ["TESSERA_TEST_QDRANT_URL"] if engine == "server" else ":memory:"
    server, name = QdrantServer(url, shards=2), f"test-{uuid.uuid4()}"

    def opened(dim: int = 6, *, tag: str = "", config: Any = None) -> Any:
        return open_qdrant(server, name, dim, tag=tag, group=name)

    yield opened
    drop_group(server, name)
