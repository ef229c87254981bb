"""Two concurrent calls that divide the threads of torch."""

from __future__ import annotations

from threading import Barrier, current_thread

import pytest
import torch

from ml.keypoints.parallel import run_both, run_single


def test_calls_run_concurrently_and_return_in_order() -> None:
    meeting = Barrier(2, timeout=30)  # breaks where one waits for the other to end

    def barrier(number: int) -> tuple[int, str]:
        meeting.wait()
        return 10 * number, current_thread().name

    (item, name), (other, other_name) = run_both(barrier, 1, 2)
    assert (item, other) == (10, 20)
    assert name != other_name


def test_torch_has_half_of_its_threads_during_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [6]
    monkeypatch.setattr(torch, "get_num_threads", lambda: now[0])
    monkeypatch.setattr(torch, "set_num_threads", lambda count: now.__setitem__(0, count))
    nested = run_both(lambda _: (torch.get_num_threads(), run_both(lambda _: now[0], 0, 0)), 1, 2)
    assert nested == ((3, (3, 3)), (3, (3, 3)))
    assert run_single(lambda _: (now[0], run_both(lambda _: now[0], 0, 0)), 1) == (3, (3, 3))
    assert now == [6]


def test_the_first_error_is_raised_and_threads_are_restored() -> None:
    before = torch.get_num_threads()

    def fail(name: str) -> None:
        raise ValueError(name)

    with pytest.raises(ValueError, match=r"^one$"):
        run_both(fail, "one", "two")
    assert torch.get_num_threads() == before
