"""Device and mode in which networks run.

``TESSERA_DEVICE`` is auto, cpu, cuda or cuda:N. The reference is the CPU: float32, in batches whose
size does not change a result. A GPU computes large batches in half precision; its results agree
with the reference within the tolerance that each user states.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ml.gpu import is_compiling, memory_bound_gib, select_gpu
from ml.types import ArrayF32

logger = logging.getLogger(__name__)
Array = npt.NDArray[Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Compute:
    """A device and its mode of computation.

    Attributes:
        device: Device of networks and their inputs.
        batched: True for large batches in half precision; False for the reference.
        half: Precision of matrix products if ``batched``; sums and ranks are float32.
    """

    device: torch.device
    batched: bool
    half: torch.dtype = torch.float16

    def precision(self) -> AbstractContextManager[object]:
        """Context for inference."""
        if not self.batched or self.half == torch.float32:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=self.half)

    def training_precision(self) -> AbstractContextManager[object]:
        """Context for training; losses and ranks are computed outside of it.

        bfloat16 if ``batched``: its range is that of float32, so losses need no scaling.
        """
        if not self.batched:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    def to_device(self, rows: Array) -> Tensor:
        """Copy rows to the device, from pinned memory so that copying overlaps with computation."""
        tensor = torch.from_numpy(rows)
        if self.device.type == "cuda":
            tensor = tensor.pin_memory()
        return tensor.to(self.device, non_blocking=True)

    def forward(
        self, network: Callable[[Tensor], Tensor], rows: Array, *, reference: int, batch: int
    ) -> ArrayF32:
        """Apply a network on ``device`` to rows, in batches.

        Args:
            network: (B, ...) to (B, D), in evaluation mode; it enters ``precision``.
            rows: (N, ...), N >= 1.
            reference: Batch size if not ``batched``.
            batch: Batch size if ``batched``, halved until a batch fits into memory.
        Returns:
            (N, D) float32.
        """

        def step(part: slice) -> ArrayF32:
            with torch.inference_mode():
                return np.asarray(
                    network(self.to_device(rows[part])).float().cpu().numpy(), np.float32
                )

        size = batch if self.batched else reference
        return np.concatenate(list(in_batches(step, len(rows), size)))


class Compiled:
    """A network compiled by torch; if compilation fails, it runs uncompiled.

    Args:
        network: (B, ...) to (B, D), in evaluation mode.
    """

    def __init__(self, network: Callable[[Tensor], Tensor]) -> None:
        from torch._dynamo.exc import TorchDynamoException  # takes seconds to import

        self._plain, self._fails_with = network, TorchDynamoException
        # one graph for batches of any length
        self._fast: Callable[[Tensor], Tensor] | None = torch.compile(network, dynamic=True)

    def __call__(self, rows: Tensor) -> Tensor:
        """Apply the network to rows."""
        if self._fast is not None:
            try:
                return self._fast(rows)
            except self._fails_with as error:
                self._fast = None
                line = " ".join(str(error).split("\n")[:2])
                logger.warning("a network could not be compiled (%s); it runs uncompiled", line)
        return self._plain(rows)


def compile_network(
    network: Callable[[Tensor], Tensor], compute: Compute
) -> Callable[[Tensor], Tensor]:
    """Compile the network if ``compute`` is batched and ``TESSERA_COMPILE`` is set.

    Raises:
        BadInputError: See ``is_compiling``.
    """
    return Compiled(network) if compute.batched and is_compiling() else network


REFERENCE = Compute(torch.device("cpu"), batched=False)
"""Reference computation on the CPU."""


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """Description of a device for a page or a log.

    Attributes:
        device: Name for torch, such as cpu or cuda:0.
        name: Model of the GPU; "CPU" for a CPU.
        memory_gib: Memory that this process may use; None for a CPU.
    """

    device: str
    name: str
    memory_gib: float | None

    def __str__(self) -> str:
        if self.memory_gib is None:
            return f"{self.name} ({self.device})"
        return f"{self.name} ({self.device}, {self.memory_gib:.0f} GiB)"


def select_device(name: str | None = None) -> torch.device:
    """Select a device by name; None for that of the environment, or a GPU if there is one.

    Raises:
        BadInputError: Unknown name, or no such GPU.
    """
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    number = select_gpu(name, gpus)
    return torch.device("cpu") if number is None else torch.device("cuda", number)


def select_compute(name: str | None = None) -> Compute:
    """Select a device and its mode, and set the memory bound of this process.

    Raises:
        BadInputError: See ``select_device``; or the memory bound is not a number above 0.
    """
    device = select_device(name)
    _log_device(str(device_report(name)))
    if device.type == "cpu":
        return REFERENCE
    bound = memory_bound_gib()
    if bound is not None:
        total_gib = torch.cuda.get_device_properties(device).total_memory / 2**30
        torch.cuda.set_per_process_memory_fraction(min(1.0, bound / total_gib), device)
    return Compute(device, batched=True)


@cache
def _log_device(report: str) -> None:
    logger.info("networks run on %s", report)


def device_report(name: str | None = None) -> DeviceReport:
    """Describe the selected device.

    Raises:
        BadInputError: See ``select_compute``.
    """
    device = select_device(name)
    if device.type == "cpu":
        return DeviceReport("cpu", "CPU", None)
    properties = torch.cuda.get_device_properties(device)
    total_gib = properties.total_memory / 2**30
    return DeviceReport(
        str(device), properties.name, min(memory_bound_gib() or total_gib, total_gib)
    )


def in_batches(step: Callable[[slice], T], count: int, batch: int) -> Iterator[T]:
    """Yield the results of ``count`` rows, computed in batches.

    If a batch does not fit into the memory of the device, the batch size is halved from there on.

    Args:
        step: Computes the rows of a slice.
        batch: Batch size, at least 1.
    Raises:
        torch.OutOfMemoryError: A single row does not fit.
    """
    start = 0
    while start < count:
        try:
            result = step(slice(start, min(start + batch, count)))
        except torch.OutOfMemoryError:
            if batch == 1:
                raise
            batch = batch // 2
            torch.cuda.empty_cache()
            continue
        yield result
        start += batch
