from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from ml.errors import BadInputError
from ml.training.common.checkpoint import read_checkpoint, write_checkpoint


@dataclass(frozen=True)
class Run:
    steps: int = 3


def test_a_run_resumes_from_its_checkpoint(tmp_path):
    path = tmp_path / "checkpoint.pt"
    assert read_checkpoint(path, Run()) is None
    write_checkpoint(path, Run(), {"losses": [0.5], "weights": torch.ones(2)})
    state = read_checkpoint(path, Run())
    assert state["losses"] == [0.5] and torch.equal(state["weights"], torch.ones(2))
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint.pt"]


def test_the_state_of_another_run_raises_an_error(tmp_path):
    write_checkpoint(tmp_path / "checkpoint.pt", Run(), {})
    with pytest.raises(BadInputError, match="configuration"):
        read_checkpoint(tmp_path / "checkpoint.pt", Run(steps=4))


def test_the_state_of_an_earlier_release_raises_an_error(tmp_path):
    @dataclass(frozen=True)
    class More(Run):
        held_out: tuple[str, ...] = ()

    write_checkpoint(tmp_path / "checkpoint.pt", Run(), {})
    with pytest.raises(BadInputError, match="earlier release"):
        read_checkpoint(tmp_path / "checkpoint.pt", More())


def test_a_run_from_other_weights_is_another_run(tmp_path):
    path = tmp_path / "checkpoint.pt"
    write_checkpoint(path, Run(), {"losses": []}, start=b"one")
    assert read_checkpoint(path, Run(), start=b"one")["losses"] == []
    for start in (b"", b"two"):
        with pytest.raises(BadInputError, match="configuration"):
            read_checkpoint(path, Run(), start=start)
