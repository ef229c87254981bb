"""Distributed data-parallel training by several processes, as torchrun starts them.

Each process draws its own examples and steps along the mean of all gradients, so that all hold the
same weights and ``world`` processes learn from ``world`` times the batch. A single process computes
the same bits as without this module.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import distributed as dist
from torch import nn
from torch.distributed.rendezvous import rendezvous

from ml.errors import BadInputError
from ml.gpu import VARIABLE


@dataclass(frozen=True, slots=True)
class Peers:
    """Rank and number of the processes of a distributed training.

    Attributes:
        rank: 0 writes the checkpoint, the weights and the log.
        world: number of processes.
    """

    rank: int = 0
    world: int = 1

    def draw_number(self, step: int) -> int:
        """Number that seeds the examples of a step, different in each process."""
        return step * self.world + self.rank

    def average(self, optimiser: torch.optim.Optimizer) -> None:
        """Replace the gradients of the trained parameters by their mean over the processes."""
        if self.world == 1:
            return
        owned = [p for group in optimiser.param_groups for p in group["params"]]
        for parameter in owned:
            if parameter.grad is None:  # the other processes wait for a contribution of this one
                parameter.grad = torch.zeros_like(parameter)
        flat = torch.cat([p.grad.flatten() for p in owned])
        dist.all_reduce(flat)
        flat /= self.world
        start = 0
        for parameter in owned:
            count = parameter.numel()
            parameter.grad.copy_(flat[start : start + count].view_as(parameter))
            start += count

    def minimum(self, count: int) -> int:
        """Minimum of a count over the processes."""
        if self.world == 1:
            return count
        tensor = self._tensor(count)
        dist.all_reduce(tensor, op=dist.ReduceOp.MIN)
        return int(tensor)

    def barrier(self) -> None:
        """Wait for all processes, for example for a file that another one writes."""
        self.minimum(0)

    def first_decides(self, *, value: bool) -> bool:
        """Value of the first process, so that all stop at the same step."""
        if self.world == 1:
            return value
        tensor = self._tensor(int(value))
        dist.broadcast(tensor, src=0)
        return bool(tensor)

    def mean(self, value: float) -> float:
        """Mean of a number over the processes."""
        if self.world == 1:
            return value
        tensor = self._tensor(value)
        dist.all_reduce(tensor)
        return float(tensor) / self.world

    def broadcast_weights(self, modules: Iterable[nn.Module]) -> None:
        """Give every process the weights of the first."""
        if self.world == 1:
            return
        for module in modules:
            for tensor in module.state_dict().values():
                dist.broadcast(tensor, src=0)

    @staticmethod
    def _tensor(value: float) -> torch.Tensor:
        device = "cuda" if dist.get_backend() == "nccl" else "cpu"
        return torch.tensor(float(value), dtype=torch.float64, device=device)


_present = Peers()


def peers() -> Peers:
    """Processes of this training; a single one outside of ``joined``."""
    return _present


@contextmanager
def joined() -> Iterator[Peers]:
    """Join the processes that torchrun started; a single one without torchrun.

    Each process takes the GPU of its local rank, if there are any and the environment names none.

    Raises:
        BadInputError: torchrun's variables are not whole numbers.
    """
    global _present  # noqa: PLW0603 - a process has one set of peers, as torch.distributed has
    try:
        world = int(os.environ.get("WORLD_SIZE", "1"))
        local = int(os.environ.get("LOCAL_RANK", "0"))
    except ValueError as error:
        raise BadInputError(f"WORLD_SIZE, LOCAL_RANK: {error}") from error
    if world <= 1:
        yield _present
        return
    name = os.environ.get(VARIABLE) or "auto"
    on_gpus = name != "cpu" and torch.cuda.is_available()
    if on_gpus:
        if ":" not in name:
            os.environ[VARIABLE] = f"cuda:{local}"
        torch.cuda.set_device(torch.device(os.environ[VARIABLE]))
    store, rank, world = next(rendezvous("env://"))
    dist.init_process_group("nccl" if on_gpus else "gloo", store=store, rank=rank, world_size=world)
    _present = Peers(rank, world)
    try:
        yield _present
        _leave(store, _present)
    finally:
        _present = Peers()
        dist.destroy_process_group()


def _leave(store: Any, process: Peers) -> None:
    """Wait until no process needs another any more.

    A process that closes its connections while another one still reads from them makes gloo report
    a lost peer. The store is independent of the group; the first process, which may hold it, leaves
    last.
    """
    store.set(f"done/{process.rank}", "")
    store.wait([f"done/{rank}" for rank in range(process.world)])
    if process.rank:
        store.set(f"left/{process.rank}", "")
    else:
        store.wait([f"left/{rank}" for rank in range(1, process.world)])
