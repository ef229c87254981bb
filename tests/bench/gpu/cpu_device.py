"""The processor in the place of a GPU: the code for one, in batches and half precision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch

from ml.networks import device


class _Config:
    device = 0


class _Resources:
    def setTempMemory(self, nbytes: int) -> None:
        """Nothing has to be set aside."""


@contextmanager
def cpu_as_gpu() -> Iterator[None]:
    """Run code uncompiled that would be compiled for a GPU, since a compiler takes minutes."""
    compute = device.Compute(torch.device("cpu"), batched=True, half=torch.bfloat16)
    with (
        patch.object(device, "REFERENCE", compute),
        patch.object(torch, "compile", lambda network, **_options: network),
        _faiss(),
    ):
        yield


@contextmanager
def _faiss() -> Iterator[None]:
    """FAISS' build for a GPU, as far as ``ml.index`` uses it."""
    try:
        import faiss
    except ModuleNotFoundError:  # a machine with a GPU need not have it: what needs it is skipped
        yield
        return
    from ml.index.files.segments import gpu_vectors

    def flat(_resources: _Resources, dim: int, _config: _Config) -> Any:
        return faiss.IndexFlatL2(dim)

    with (
        patch.object(faiss, "get_num_gpus", lambda: 1),
        patch.object(faiss, "StandardGpuResources", _Resources, create=True),
        patch.object(faiss, "GpuIndexFlatConfig", _Config, create=True),
        patch.object(faiss, "GpuIndexFlatL2", flat, create=True),
        patch.object(gpu_vectors, "select_gpu", lambda _name, _gpus: 0),
    ):
        yield
