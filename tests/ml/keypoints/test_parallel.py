"""Two things at once, in order, with torch's threads shared out and given back."""

from __future__ import annotations

from threading import Barrier, current_thread

import pytest
import torch

from ml.keypoints.parallel import alone, both


def test_both_run_at_once_and_come_back_in_order() -> None:
    meeting = Barrier(2, timeout=30)  # breaks where one waits for the other to end

    def meet(number: int) -> tuple[int, str]:
        meeting.wait()
        return 10 * number, current_thread().name

    (one, name), (other, other_name) = both(meet, 1, 2)
    assert (one, other) == (10, 20)
    assert name != other_name


def test_torch_has_half_of_its_threads_meanwhile_and_all_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [6]
    monkeypatch.setattr(torch, "get_num_threads", lambda: now[0])
    monkeypatch.setattr(torch, "set_num_threads", lambda count: now.__setitem__(0, count))
    nested = both(lambda _: (torch.get_num_threads(), both(lambda _: now[0], 0, 0)), 1, 2)
    assert nested == ((3, (3, 3)), (3, (3, 3)))
    assert alone(lambda _: (now[0], both(lambda _: now[0], 0, 0)), 1) == (3, (3, 3))
    assert now == [6]


def test_the_error_of_the_first_comes_first_and_threads_come_back() -> None:
    before = torch.get_num_threads()

    def fail(name: str) -> None:
        raise ValueError(name)

    with pytest.raises(ValueError, match="one"):
        both(fail, "one", "two")
    assert torch.get_num_threads() == before
