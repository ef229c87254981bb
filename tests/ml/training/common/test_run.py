"""The run shared by all schemes: resumed, refused, logged."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from ml.errors import BadInputError, CancelledError
from ml.training.common.length import with_length
from ml.training.common.run import (
    History,
    TrainingRun,
    add_run_arguments,
    one_thread,
)
from ml.types import no_progress


@dataclass(frozen=True)
class LineConfig:
    name: str = "line"
    version: str = "1.0"
    rate: float = 0.1
    seed: int = 3


class LineLearner:
    """Fits a line; every step draws its points from a generator of its own."""

    def __init__(self, config: LineConfig) -> None:
        self.config = config
        self.network = nn.Linear(1, 1)
        self.modules = {"network": self.network}
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=config.rate)

    def step(self, number: int, history: History) -> float:
        rng = np.random.default_rng((self.config.seed, number))
        x = torch.from_numpy(rng.random((8, 1)).astype(np.float32))
        loss = (self.network(x) - 2 * x - 1).square().mean()
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        history.setdefault("number", []).append(number)
        return float(loss.detach())


def _trained(run: TrainingRun[LineConfig], *, steps: int = 6, every: int = 2) -> LineLearner:
    with run.learning():
        learner = LineLearner(run.config)
        run.train(learner, steps=steps, checkpoint_every=every)
    return learner


def test_an_interrupted_run_resumes_to_the_result_of_an_uninterrupted_one(tmp_path: Path) -> None:
    def stop(done: int, total: int, phase: str) -> None:
        if done == 5:
            raise CancelledError("stop")

    straight = TrainingRun(LineConfig(), tmp_path / "straight")
    expected = _trained(straight).network.weight
    with pytest.raises(CancelledError):
        _trained(TrainingRun(LineConfig(), tmp_path / "broken", progress=stop))
    resumed = TrainingRun(LineConfig(), tmp_path / "broken")
    assert torch.equal(_trained(resumed).network.weight, expected)
    assert resumed.history == straight.history
    assert resumed.history["number"] == [0, 1, 2, 3, 4, 5]


class NarrowLearner(LineLearner):
    """Does not fit above a batch of 3."""

    def __init__(self, config: LineConfig) -> None:
        super().__init__(config)
        self.batch, self.tried = 12, []

    def step(self, number: int, history: History) -> float:
        self.tried.append((number, self.batch))
        if self.batch > 3:
            raise torch.OutOfMemoryError
        return super().step(number, history)


def _narrow(run: TrainingRun[LineConfig], steps: int) -> NarrowLearner:
    with run.learning():
        learner = NarrowLearner(run.config)
        run.train(learner, steps=steps, checkpoint_every=2)
    return learner


def test_a_step_that_does_not_fit_is_taken_with_half_the_batch(tmp_path: Path) -> None:
    run = TrainingRun(LineConfig(), tmp_path)
    assert _narrow(run, 2).tried == [(0, 12), (0, 6), (0, 3), (1, 3)]
    assert run.history["batch"] == [[0, 6], [0, 3]] and len(run.losses) == 2
    assert _narrow(TrainingRun(LineConfig(), tmp_path), 3).tried == [(2, 3)]


def test_a_step_that_fits_at_no_batch_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ml.training.common.memory.MIN_BATCH", 4)
    with pytest.raises(torch.OutOfMemoryError):
        _narrow(TrainingRun(LineConfig(), tmp_path), 2)


def test_a_longer_run_resumes_and_a_finished_one_takes_no_step(tmp_path: Path) -> None:
    first = TrainingRun(LineConfig(), tmp_path)
    _trained(first)
    again = TrainingRun(LineConfig(), tmp_path)
    _trained(again)
    assert again.losses == first.losses
    longer = TrainingRun(LineConfig(), tmp_path)
    _trained(longer, steps=8)
    assert longer.losses[:6] == first.losses and len(longer.losses) == 8


def test_another_configuration_and_other_starting_weights_raise_an_error(tmp_path: Path) -> None:
    _trained(TrainingRun(LineConfig(), tmp_path))
    with pytest.raises(BadInputError, match="configuration"):
        _trained(TrainingRun(LineConfig(rate=0.2), tmp_path))
    (tmp_path / "start").write_bytes(b"weights")
    with pytest.raises(BadInputError, match="configuration"):
        _trained(TrainingRun(LineConfig(), tmp_path, start=tmp_path / "start"))


def test_networks_are_seeded_and_trained_on_one_thread(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    weights = []
    for name in ("a", "b"):
        run = TrainingRun(LineConfig(), tmp_path / name)
        with run.learning():
            assert torch.get_num_threads() == 1
            weights.append(nn.Linear(3, 3).weight)
    assert torch.equal(*weights)
    with pytest.raises(RuntimeError), one_thread():
        raise RuntimeError
    assert torch.get_num_threads() == before


def test_the_summary_has_the_configuration_and_the_log_every_number(tmp_path: Path) -> None:
    run = TrainingRun(LineConfig(), tmp_path, given_weights=tmp_path / "runs" / "own.safetensors")
    assert run.weights.parent.is_dir(), "a training ends by writing there"
    _trained(run)
    run.history["score"] = [float("nan"), 0.5]
    summary = run.summary(last=2)
    assert (summary["name"], summary["weights"]) == ("line", "own.safetensors")
    assert summary["train_config"] == {"name": "line", "version": "1.0", "rate": 0.1, "seed": 3}
    assert summary["loss_first"] == run.losses[0]
    assert summary["loss_last"] == pytest.approx(sum(run.losses[-2:]) / 2)
    run.write_log(summary)
    log = json.loads((tmp_path / "log.json").read_text())
    assert log["history"]["loss"] == run.losses and log["history"]["score"] == [None, 0.5]
    assert TrainingRun(LineConfig(), tmp_path / "none").summary()["loss_last"] is None


@pytest.mark.parametrize("has_card", [True, False])
def test_command_line_arguments_configure_the_run(tmp_path: Path, has_card: bool) -> None:
    parser = argparse.ArgumentParser()
    add_run_arguments(parser, has_card=has_card)
    words = ["--data", "d", "--out", str(tmp_path / "new" / "out")]
    args = parser.parse_args(words + (["--card", "card.md"] if has_card else []))
    run = TrainingRun.of(args, LineConfig(), no_progress)
    assert run.out.is_dir() and run.weights == run.out / "line.safetensors"
    assert run.card == (Path("card.md") if has_card else None) and run.start is None


@dataclass(frozen=True)
class LongConfig(LineConfig):
    steps: int = 6


def test_a_finished_run_continues_for_more_steps(tmp_path: Path) -> None:
    straight = TrainingRun(LongConfig(steps=9), tmp_path / "straight")
    expected = _trained(straight, steps=9)
    _trained(TrainingRun(LongConfig(steps=6), tmp_path / "longer"), steps=6)
    longer = TrainingRun(LongConfig(steps=9), tmp_path / "longer")
    learner = _trained(longer, steps=9)
    assert longer.losses == straight.losses and len(longer.losses) == 9
    assert torch.equal(learner.network.weight, expected.network.weight)


def test_a_run_ends_after_its_hours_and_the_same_call_resumes(tmp_path: Path) -> None:
    first = TrainingRun(LongConfig(), tmp_path, hours=0.0)
    _trained(first)
    assert first.summary()["stopped_early"] and len(first.losses) == 1
    rest = TrainingRun(LongConfig(), tmp_path)
    _trained(rest)
    straight = TrainingRun(LongConfig(), tmp_path / "straight")
    _trained(straight)
    assert rest.losses == straight.losses and not rest.summary()["stopped_early"]


def test_the_length_sets_the_largest_unit_of_a_configuration() -> None:
    @dataclass(frozen=True)
    class Both(LongConfig):
        epochs: int = 2

    assert with_length(Both(), 5) == Both(epochs=5)
    assert with_length(LongConfig(), 5) == LongConfig(steps=5)
    with pytest.raises(BadInputError, match="steps"):
        with_length(LineConfig(), 5)
    with pytest.raises(BadInputError, match=r"steps: .*-1$"):
        with_length(LongConfig(), -1)


def test_losses_are_plotted_next_to_the_log(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    run = TrainingRun(LineConfig(), tmp_path)
    _trained(run)
    run.write_log(run.summary())
    assert (tmp_path / "loss.png").stat().st_size > 1000
