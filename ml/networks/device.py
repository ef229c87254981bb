"""Where networks run, and how: decided here and nowhere else.

``TESSERA_DEVICE`` is auto, cpu, cuda or cuda:N. On a CPU everything is computed in float32 and in
batches whose size never changes a result: that is the reference. A GPU takes large batches in half
precision; its results agree with the reference within the tolerance that each user states.
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

from ml.gpu import gpu_asked, is_compiling, memory_bound_gib
from ml.types import ArrayF32

logger = logging.getLogger(__name__)
Array = npt.NDArray[Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Compute:
    """A device and the way of working on it.

    Attributes:
        device: where networks and their inputs are.
        batched: many inputs at a time, in half precision; False computes the reference.
        half: the precision of matrix products where ``batched``; sums and ranks stay float32.
    """

    device: torch.device
    batched: bool
    half: torch.dtype = torch.float16

    def precision(self) -> AbstractContextManager[object]:
        """The context that networks run in."""
        if not self.batched or self.half == torch.float32:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=self.half)

    def learning(self) -> AbstractContextManager[object]:
        """The context that networks are trained in; losses and ranks are computed outside of it.

        In bfloat16 where ``batched``: its range is that of float32, so no loss has to be scaled.
        """
        if not self.batched:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    def sent(self, rows: Array) -> Tensor:
        """The rows on the device; from pinned memory, so that the copy runs beside the work."""
        tensor = torch.from_numpy(rows)
        if self.device.type == "cuda":
            tensor = tensor.pin_memory()
        return tensor.to(self.device, non_blocking=True)

    def forward(
        self, network: Callable[[Tensor], Tensor], rows: Array, *, reference: int, batch: int
    ) -> ArrayF32:
        """What a network on ``device`` makes of rows, in batches.

        Args:
            network: (B, ...) to (B, D), in evaluation mode; it enters ``precision`` itself.
            rows: (N, ...), N >= 1.
            reference: rows at a time where not ``batched``.
            batch: rows at a time where ``batched``, halved until they fit into memory.
        Returns:
            (N, D) float32.
        """

        def step(part: slice) -> ArrayF32:
            with torch.inference_mode():
                return np.asarray(network(self.sent(rows[part])).float().cpu().numpy(), np.float32)

        size = batch if self.batched else reference
        return np.concatenate(list(in_batches(step, len(rows), size)))


class Compiled:
    """A network compiled by torch; if that fails, it runs uncompiled from then on.

    Args:
        network: (B, ...) to (B, D), in evaluation mode.
    """

    def __init__(self, network: Callable[[Tensor], Tensor]) -> None:
        from torch._dynamo.exc import TorchDynamoException  # takes seconds to import

        self._plain, self._fails_with = network, TorchDynamoException
        # batches differ in length: one graph for all of them
        self._fast: Callable[[Tensor], Tensor] | None = torch.compile(network, dynamic=True)

    def __call__(self, rows: Tensor) -> Tensor:
        """What the network makes of rows."""
        if self._fast is not None:
            try:
                return self._fast(rows)
            except self._fails_with as error:
                self._fast = None
                line = " ".join(str(error).split("\n")[:2])
                logger.warning("a network could not be compiled (%s); it runs uncompiled", line)
        return self._plain(rows)


def compiled(network: Callable[[Tensor], Tensor], compute: Compute) -> Callable[[Tensor], Tensor]:
    """The network, compiled where ``compute`` is fast and ``TESSERA_COMPILE`` asks for it.

    Raises:
        BadInputError: see ``is_compiling``.
    """
    return Compiled(network) if compute.batched and is_compiling() else network


REFERENCE = Compute(torch.device("cpu"), batched=False)
"""The CPU, whose results everything else is compared to."""


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """What a page or a log says of a device.

    Attributes:
        device: as torch names it: cpu, cuda:0.
        name: of the model; "CPU" for the processor.
        memory_gib: what it has, or what this process may take of it; None for the processor.
    """

    device: str
    name: str
    memory_gib: float | None

    def __str__(self) -> str:
        if self.memory_gib is None:
            return f"{self.name} ({self.device})"
        return f"{self.name} ({self.device}, {self.memory_gib:.0f} GiB)"


def chosen_device(name: str | None = None) -> torch.device:
    """The device of that name; without one that of the environment, else a GPU if there is one.

    Raises:
        BadInputError: another name, or a GPU that is not there.
    """
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    number = gpu_asked(name, gpus)
    return torch.device("cpu") if number is None else torch.device("cuda", number)


def chosen_compute(name: str | None = None) -> Compute:
    """The device of ``chosen_device`` and how to work on it, its share of memory set.

    Raises:
        BadInputError: see ``chosen_device``; or the memory bound is not a number above 0.
    """
    device = chosen_device(name)
    _say_once(str(device_report(name)))
    if device.type == "cpu":
        return REFERENCE
    bound = memory_bound_gib()
    if bound is not None:
        whole = torch.cuda.get_device_properties(device).total_memory / 2**30
        torch.cuda.set_per_process_memory_fraction(min(1.0, bound / whole), device)
    return Compute(device, batched=True)


@cache
def _say_once(report: str) -> None:
    logger.info("networks run on %s", report)


def device_report(name: str | None = None) -> DeviceReport:
    """What the chosen device is.

    Raises:
        BadInputError: see ``chosen_compute``.
    """
    device = chosen_device(name)
    if device.type == "cpu":
        return DeviceReport("cpu", "CPU", None)
    properties = torch.cuda.get_device_properties(device)
    whole = properties.total_memory / 2**30
    return DeviceReport(str(device), properties.name, min(memory_bound_gib() or whole, whole))


def in_batches(step: Callable[[slice], T], count: int, batch: int) -> Iterator[T]:
    """The results of ``count`` rows, this many at a time.

    A batch that does not fit into the memory of the device is tried again at half the size, and
    what follows stays at that size.

    Args:
        step: computes the rows of a slice.
        batch: rows at a time, at least 1.
    Raises:
        torch.OutOfMemoryError: not even one row fits.
    """
    start = 0
    while start < count:
        try:
            found = step(slice(start, min(start + batch, count)))
        except torch.OutOfMemoryError:
            if batch == 1:
                raise
            batch = batch // 2
            torch.cuda.empty_cache()
            continue
        yield found
        start += batch
