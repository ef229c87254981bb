"""Two processes by torchrun train as one process with the examples of both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from ml.errors import BadInputError
from ml.training.common.peers import Peers, joined, peers

ROOT = Path(__file__).resolve().parents[4]

SCRIPT = """
import argparse, itertools, json, sys
from pathlib import Path
import numpy as np, torch
from torch import nn
from ml.training.common.peers import joined, peers
from ml.training.common import run as runs
from ml.training.common.run import TrainingRun
from ml.training.common.steps import descend, step_without_loss
from ml.types import no_progress
from tests.ml.training.common.test_peers import Config, points
from tests.polling import wait_until

class Learner:
    def __init__(self):
        torch.manual_seed(peers().rank)  # each begins with weights of its own
        self.network = nn.Linear(2, 1)
        self.modules = {"network": self.network}
        self.optimiser = torch.optim.SGD(self.network.parameters(), lr=0.1)
        self.counts = []

    def step(self, number, history):
        self.counts.append(peers().minimum(3 + peers().rank))
        if number == 2 and peers().rank == 1:
            step_without_loss(self.optimiser)  # this process drew nothing to learn from
            return 0.0
        x, y = points(peers().draw_number(number))
        return descend(self.optimiser, (self.network(x) - y).square().mean())

writes = itertools.count(1)

def write_late(*args, **kwargs):
    if next(writes) == 2:  # who does not wait for this one reads the first, or none
        wait_until((out / "second-run").exists, "the other process begins again", within_s=60)
    write_checkpoint(*args, **kwargs)

write_checkpoint, runs.write_checkpoint = runs.write_checkpoint, write_late
out = Path(sys.argv[1])
args = argparse.Namespace(steps=None, out=out, weights=None, hours=None)
with joined() as here:
    for steps in (2, 4):  # the second run goes on from the checkpoint of the first
        run = TrainingRun.of(args, Config(), no_progress)
        learner = Learner()
        if steps == 4 and here.rank == 1:
            (out / "second-run").touch()
        run.train(learner, steps=steps, checkpoint_every=1)
    said = {"rank": here.rank, "world": here.world, "losses": run.losses, "counts": learner.counts,
            "weights": learner.network.weight.tolist(), "bias": learner.network.bias.tolist(),
            "out": run.out.name}
    (out / f"said-{here.rank}.json").write_text(json.dumps(said))
assert peers().world == 1
"""


@dataclass(frozen=True)
class Config:
    name: str = "line"
    version: str = "1.0"
    seed: int = 0


def points(number):
    rng = np.random.default_rng(number)
    x = torch.from_numpy(rng.standard_normal((4, 2)).astype(np.float32))
    return x, (x @ torch.tensor([[2.0], [-1.0]]) + 0.5)


def test_a_single_process_uses_every_draw():
    alone = peers()
    assert alone == Peers() and [alone.draw_number(step) for step in range(4)] == [0, 1, 2, 3]
    assert (alone.minimum(7), alone.mean(0.25), alone.first_decides(value=True)) == (7, 0.25, True)
    assert {Peers(rank, 3).draw_number(step) for rank in range(3) for step in range(4)} == set(
        range(12)
    )
    with joined() as here:
        assert here is alone


def test_environment_variables_that_are_no_numbers_raise_an_error(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "two")
    with pytest.raises(BadInputError, match="WORLD_SIZE"), joined():
        pass


@pytest.mark.slow
@pytest.mark.endurance
def test_two_processes_take_the_steps_of_a_single_process_with_all_examples(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    out = tmp_path / "out"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", "2", str(script), str(out)),
        ],
        env=os.environ | {"PYTHONPATH": str(ROOT), "TESSERA_DEVICE": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    first, second = (json.loads((out / f"said-{rank}.json").read_text()) for rank in (0, 1))
    assert (first["world"], first["rank"], second["rank"]) == (2, 0, 1)
    assert (first["out"], second["out"]) == ("out", ".rank-1")
    assert first["counts"] == second["counts"] == [3, 3]  # of steps 2 and 3
    assert (first["weights"], first["bias"]) == (second["weights"], second["bias"])
    torch.manual_seed(0)
    network = nn.Linear(2, 1)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1)
    for step in range(4):
        losses = []
        for rank in range(2):
            x, y = points(Peers(rank, 2).draw_number(step))
            losses.append((network(x) - y).square().mean())
        optimiser.zero_grad()
        (losses[0] / 2 if step == 2 else (losses[0] + losses[1]) / 2).backward()
        optimiser.step()
    assert np.allclose(first["weights"], network.weight.detach(), atol=1e-6)
    assert np.allclose(first["bias"], network.bias.detach(), atol=1e-6)
    assert len(first["losses"]) == 4 and first["losses"] == second["losses"]
