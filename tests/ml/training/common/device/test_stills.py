"""Stills are uploaded once, and only so many are kept."""

from __future__ import annotations

import numpy as np

from ml.training.common.device.stills import KeptPlanes


def test_an_array_is_uploaded_once_and_those_not_used_for_longest_go(fast, monkeypatch):
    sent = []
    real = type(fast).sent
    monkeypatch.setattr(type(fast), "sent", lambda self, rows: sent.append(1) or real(self, rows))
    arrays = [np.full((10, 10), i, np.uint8) for i in range(3)]
    kept = KeptPlanes(fast, most_bytes=250)
    for i in (0, 1, 0, 1):
        assert int(kept(arrays[i])[0, 0]) == i
    assert len(sent) == 2
    assert int(kept(arrays[2])[0, 0]) == 2  # 0 goes
    kept(arrays[1])
    assert len(sent) == 3
    kept(arrays[0])
    assert len(sent) == 4


def test_one_that_is_too_large_is_kept_as_long_as_it_is_used(fast):
    kept = KeptPlanes(fast, most_bytes=10)
    large = np.zeros((20, 20), np.uint8)
    assert kept(large) is kept(large)
