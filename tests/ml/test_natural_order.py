"""Files in natural order."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ml.natural_order import natural_key, natural_sort


@pytest.mark.parametrize(
    "names",
    [
        ["frame_1.png", "frame_2.png", "frame_10.png", "frame_100.png"],
        ["frame_0001.png", "frame_0002.png", "frame_0010.png"],
        ["f_0009.png", "f_10.png", "f_011.png"],
        ["a.png", "a1.png", "a2.png", "a10.png"],
        ["a1b10.png", "a2b2.png", "a2b9.png"],
        ["A1.png", "a2.png", "A3.PNG", "b1.png"],
        ["a01.png", "a1.png", "a2.png"],
        ["1.png", "2.png", "10.png", "x.png"],
        ["case 2/frame_9.png", "case 2/frame_10.png", "case 10/frame_1.png"],
        ["t1.5.png", "t1.10.png", "t2.png"],
        [f"{'9' * 5000}.png", f"1{'0' * 5000}.png"],
    ],
    ids=lambda names: names[0][:20],
)
def test_numbers_in_names_are_sorted_by_value(names: list[str]) -> None:
    shuffled = [Path(name) for name in names]
    random.Random(3).shuffle(shuffled)
    assert natural_sort(shuffled) == [Path(name) for name in names]
    assert natural_sort(reversed(shuffled)) == [Path(name) for name in names]
    assert sorted(map(str, shuffled), key=natural_key) == names
