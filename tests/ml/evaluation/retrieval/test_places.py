from __future__ import annotations

import numpy as np
import pytest

from ml.errors import BadInputError
from ml.evaluation.retrieval.places import PlacesConfig, places, read_motion

CONFIG = PlacesConfig(side_px=20, step=1, spacing_px=30)


def shifts(count: int, dx: float) -> np.ndarray:
    motion = np.tile(np.eye(3), (count, 1, 1))
    motion[:, 0, 2] = dx * np.arange(count)
    return motion


def test_a_place_moves_with_the_tissue():
    rows = places(shifts(3, 5.0), np.ones((100, 100), bool), config=CONFIG)
    first = [outline.bounds for frame, place, outline in rows if place == 0]
    assert first == [(30, 0, 50, 20), (25, 0, 45, 20), (20, 0, 40, 20)]


def test_a_place_that_leaves_the_field_is_not_followed_and_one_seen_once_is_none():
    inside = np.ones((40, 100), bool)
    inside[:, :50] = False
    assert places(shifts(3, 30.0), inside, config=CONFIG) == []
    rows = places(shifts(4, 5.0), inside, config=CONFIG)
    assert [frame for frame, place, _ in rows if place == 0] == [0, 1, 2]
    assert all(outline.bounds[0] >= 50 for _, _, outline in rows)
    counts = np.bincount([place for _, place, _ in rows])
    assert (counts >= 2).all()


def test_the_same_tissue_is_one_place_whichever_frame_it_is_found_from():
    rows = places(shifts(4, 0.0), np.ones((100, 100), bool), config=CONFIG)
    assert len({place for _, place, _ in rows}) == 9


def test_steps_are_chained_into_the_first_frame(tmp_path):
    lines = ["frame,to_frame," + ",".join(f"h{i}" for i in range(9))]
    lines += [f"{frame},{frame - 1},1,0,2,0,1,3,0,0,1" for frame in (1, 2)]
    (tmp_path / "m.csv").write_text("\n".join(lines))
    np.testing.assert_allclose(read_motion(tmp_path / "m.csv", count=3)[2, :2, 2], [4, 6])
    with pytest.raises(BadInputError, match="expected 3 lines"):
        read_motion(tmp_path / "m.csv", count=4)
    with pytest.raises(BadInputError, match="no such file"):
        read_motion(tmp_path / "none.csv", count=3)
