"""Several processes that train one network: distributed data parallel, as torchrun starts it.

Every process draws examples of its own and takes the same steps with the mean of all gradients. So
all hold the same weights, and ``world`` processes learn from ``world`` times the batch. A process
on its own draws and computes what it would without this module, to the last bit.
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
    """This process among those that train together.

    Attributes:
        rank: 0 writes the checkpoint, the weights and the log. world: how many there are.
    """

    rank: int = 0
    world: int = 1

    def drawn(self, step: int) -> int:
        """The number that the examples of a step are drawn by, different in every process."""
        return step * self.world + self.rank

    def average(self, optimiser: torch.optim.Optimizer) -> None:
        """Replace the gradients of all that is trained by their mean over the processes."""
        if self.world == 1:
            return
        owned = [p for group in optimiser.param_groups for p in group["params"]]
        for parameter in owned:
            if parameter.grad is None:  # nothing to learn from here, but the others wait for it
                parameter.grad = torch.zeros_like(parameter)
        flat = torch.cat([p.grad.flatten() for p in owned])
        dist.all_reduce(flat)
        flat /= self.world
        start = 0
        for parameter in owned:
            count = parameter.numel()
            parameter.grad.copy_(flat[start : start + count].view_as(parameter))
            start += count

    def least(self, count: int) -> int:
        """The least of the processes' values: the number of steps that all of them can take."""
        if self.world == 1:
            return count
        found = self._tensor(count)
        dist.all_reduce(found, op=dist.ReduceOp.MIN)
        return int(found)

    def meet(self) -> None:
        """Wait for all: what a process wrote before, every other one finds afterwards."""
        self.least(0)

    def agreed(self, *, wish: bool) -> bool:
        """What the first process wishes, so that all stop at the same step."""
        if self.world == 1:
            return wish
        found = self._tensor(int(wish))
        dist.broadcast(found, src=0)
        return bool(found)

    def mean(self, value: float) -> float:
        """Mean of a number over the processes."""
        if self.world == 1:
            return value
        found = self._tensor(value)
        dist.all_reduce(found)
        return float(found) / self.world

    def begin_alike(self, modules: Iterable[nn.Module]) -> None:
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
    """This process and its peers; alone outside of ``joined``."""
    return _present


@contextmanager
def joined() -> Iterator[Peers]:
    """Meet the processes that torchrun has started beside this one; alone where it has none.

    On a machine with GPUs each takes the one of its local rank, unless the environment names one.

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
        _part(store, _present)
    finally:
        _present = Peers()
        dist.destroy_process_group()


def _part(store: Any, here: Peers) -> None:
    """Wait until no process needs another any more.

    A process that has its part of the last exchange may close its connections while another one
    still reads from them: gloo then reports a lost peer, though no data is lost. The store is no
    part of the group. The first process may be the one that holds it: it leaves last.
    """
    store.set(f"done/{here.rank}", "")
    store.wait([f"done/{rank}" for rank in range(here.world)])
    if here.rank:
        store.set(f"left/{here.rank}", "")
    else:
        store.wait([f"left/{rank}" for rank in range(1, here.world)])
