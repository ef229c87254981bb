"""Scores of places, by rankings worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ml.evaluation.retrieval.closeness import CalledClose
from ml.evaluation.retrieval.places.scenes import PlaceRegion, Scene, square
from ml.evaluation.retrieval.places.scores import (
    PlaceQuery,
    by_truth,
    called_close,
    nearest,
    queries,
    ranked_score,
    score_vectors,
    summed,
)
from ml.index.ranking.calibration import Calibration

OUTLINE = square(np.array([5.0, 5.0]), 4)


def scene(pairs, truth="sweep", name="s", far_gap=100):
    """Regions by (frame, place)."""
    frames = 1 + max(frame for frame, _ in pairs)
    return Scene(
        name=name,
        truth=truth,
        frames=(),
        mask=np.ones((10, 10), np.bool_),
        regions=tuple(PlaceRegion(frame, place, OUTLINE) for frame, place in pairs),
        visits=(0,) * frames,
        near_gap=1,
        far_gap=far_gap,
    )


def query(same):
    same = np.array(same, np.bool_)
    return PlaceQuery(0, 0, np.arange(1, len(same) + 1), same)


def test_average_precision_equals_a_hand_worked_value():
    """Found at ranks 1 and 3 of two: (1/1 + 2/3) / 2; only at rank 2: 1/2."""
    two = query([True, False, True])
    assert ranked_score(two, np.array([0, 1, 2])) == pytest.approx((1 + 2 / 3) / 2)
    assert ranked_score(two, np.array([0, 2, 1])) == 1.0
    assert ranked_score(query([False, True]), np.array([0, 1])) == 0.5


def test_only_the_first_ten_hits_count():
    late = query([False] * 10 + [True])
    assert ranked_score(late, np.arange(11)) == 0.0


def test_queries_need_their_place_and_another_one_in_the_gallery():
    made = scene([(0, 0), (1, 0), (1, 1), (2, 1), (3, 2)])
    made_queries = list(queries([made], "sweep", "near"))
    assert [q.index for q in made_queries] == [0, 1, 2, 3]
    assert made_queries[0].gallery.tolist() == [1, 2, 3, 4]
    assert made_queries[0].same.tolist() == [True, False, False, False]
    assert not list(queries([made], "sfm", "near")) and not list(queries([made], "sweep", "far"))
    alone = scene([(0, 0), (1, 0), (2, 0)])
    assert not list(queries([alone], "sweep", "near"))


def test_hits_are_ordered_by_distance_then_index_with_infinite_ones_last():
    made = query([True, False, False, False])
    vectors = np.array([[0.0], [2.0], [-1.0], [np.inf], [1.0]], np.float32)
    assert nearest(vectors, made).tolist() == [1, 3, 0, 2]
    lost = np.array([[np.inf], [2.0], [1.0], [np.inf], [0.0]], np.float32)
    assert nearest(lost, made).tolist() == [0, 1, 2, 3]


def test_a_perfect_and_a_useless_method():
    made = scene([(frame, place) for frame in range(4) for place in range(5)])
    perfect = np.array([[region.place] for region in made.regions], np.float32)
    (case,) = (result := score_vectors([made], [perfect]))
    assert case == ("sweep", "near")
    best = result[case]
    assert (best.score, best.low, best.high, best.queries) == (1.0, 1.0, 1.0, 20)
    noise = np.random.default_rng(0).random((20, 3)).astype(np.float32)
    useless = score_vectors([made], [noise])[case]
    assert useless.score == pytest.approx(useless.chance, abs=0.12)
    assert useless.low <= useless.score <= useless.high < 0.6
    assert useless.chance == best.chance


def test_near_and_far_are_scored_separately_for_each_truth():
    sweep = scene([(0, 0), (1, 0), (1, 1), (9, 0), (9, 1)], far_gap=5)
    sfm = scene([(0, 0), (1, 0), (1, 1)], truth="sfm")
    vectors = [np.array([[r.place] for r in s.regions], np.float32) for s in (sweep, sfm)]
    scores = score_vectors([sweep, sfm], vectors)
    assert set(scores) == {("sweep", "near"), ("sweep", "far"), ("sfm", "near")}
    nested = by_truth(scores)
    assert set(nested["sweep"]) == {"near", "far"} and nested["sfm"]["near"].score == 1.0


def test_intervals_resample_places():
    """Two places, one always found, one never: a drawn mean is 0, 1/2 or 1."""
    made = scene([(0, 0), (1, 0), (0, 1), (1, 1)])
    made_queries = list(queries([made], "sweep", "near"))
    values = [1.0 if made.regions[q.index].place == 0 else 0.0 for q in made_queries]
    sums = summed([made], made_queries, values)
    assert (sums.score, sums.low, sums.high) == (0.5, 0.0, 1.0)


def test_shares_of_close_hits_equal_hand_worked_values():
    """Two of four places are near enough for three searched; one of the other operation is."""
    same = scene([(0, 0), (1, 0), (2, 1), (3, 1)], name="1-still")
    same_operation = scene([(0, 0)], name="1-other")
    other = scene([(0, 0), (1, 1)], name="2-still", truth="sfm")
    vectors = [
        np.array([[0.0], [0.5], [10.0], [12.0]], np.float32),
        np.array([[0.0]], np.float32),
        np.array([[12.5], [np.inf]], np.float32),
    ]
    calibration = Calibration.from_quantiles([0.05, 0.9], [2.0, 20.0])
    shares = called_close([same, same_operation, other], vectors, calibration)
    assert shares == {"sweep": {"near": CalledClose(found=0.5, unrelated=0.25)}}
