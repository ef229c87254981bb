"""Cached vectors of a suite."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import BadInputError, EmptyRegionError
from ml.evaluation.retrieval.suite.config import SetConfig
from ml.evaluation.retrieval.suite.methods import SuiteMethod
from ml.evaluation.retrieval.suite.sets import labelled_set
from ml.evaluation.retrieval.suite.swap import Recolouring
from ml.evaluation.retrieval.suite.vectors import set_vectors
from ml.types import no_progress


@pytest.fixture
def dots(data):
    task_set = labelled_set(SetConfig(name="dots", path="rois", tasks={"sizes": []}), data)
    return task_set, [item.read() for item in task_set.items]


def darker(found):
    change = Recolouring(2 * np.eye(3), np.full((2, 3), np.log10(246.0)))
    return {item.stained: change for item in found.items}


class Counting:
    """Mean colour, counting the calls."""

    def __init__(self, stop_at=None):
        self.calls, self.stop_at = 0, stop_at

    def __call__(self, region):
        self.calls += 1
        if self.calls == self.stop_at:
            raise EmptyRegionError("no tissue")
        return region.pixels.mean(axis=(0, 1)).astype(np.float32)


def method(embed, key="1"):
    return SuiteMethod("mean", key, False, embed)


def vectors(dots, embed, cache, *, key="1", swaps=1):
    data_set, regions = dots
    return set_vectors(
        data_set, regions, [darker(data_set)] * swaps, [method(embed, key)], cache, no_progress
    )["mean"]


def test_draws_recolour_only_the_gallery(dots):
    result = vectors(dots, Counting(), None)
    assert result.clean.shape == (16, 3) and len(result.swapped) == 1
    assert (result.swapped[0] < result.clean - 5).all()
    assert result.clean[0] == pytest.approx(dots[1][0].pixels.mean(axis=(0, 1)), abs=1e-3)


def test_cached_vectors_are_not_computed_again(dots, tmp_path):
    first, again = Counting(), Counting()
    a, b = vectors(dots, first, tmp_path), vectors(dots, again, tmp_path)
    assert (first.calls, again.calls) == (32, 0)
    assert np.array_equal(a.clean, b.clean) and np.array_equal(a.swapped[0], b.swapped[0])
    assert len(list(tmp_path.iterdir())) == 2  # whole files, nothing temporary


def test_a_stopped_run_resumes_after_its_last_complete_part(dots, tmp_path):
    with pytest.raises(BadInputError, match=r"rois/.*\.png"):
        vectors(dots, Counting(stop_at=20), tmp_path)
    again = Counting()
    vectors(dots, again, tmp_path)
    assert again.calls == 16


def test_other_weights_or_swaps_are_computed(dots, tmp_path):
    vectors(dots, Counting(), tmp_path)
    other = Counting()
    vectors(dots, other, tmp_path, key="2", swaps=0)
    assert other.calls == 16
    data_set, regions = dots
    change = {name: Recolouring(3 * c.od, c.glass) for name, c in darker(data_set).items()}
    embed = Counting()
    set_vectors(data_set, regions, [change], [method(embed)], tmp_path, no_progress)
    assert embed.calls == 16


def test_progress_names_the_set_and_the_draw(dots):
    data_set, regions = dots
    seen = []
    set_vectors(
        data_set, regions, [darker(data_set)], [method(Counting())], None, lambda *a: seen.append(a)
    )
    assert seen[15] == (16, 16, "dots, as is") and seen[-1] == (16, 16, "dots, stain swap 1")
