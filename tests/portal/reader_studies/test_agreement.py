"""Agreement: hand-worked values, and an exhaustive search as a check of the Hungarian method."""

from __future__ import annotations

import uuid
from itertools import permutations

import numpy as np
import pytest
from shapely import box

from portal.reader_studies.agreement import DrawnRegion, findings, matches, merged, pair_agreement


def region(*bounds: float, label: str = "t", frame: int | None = None) -> DrawnRegion:
    return DrawnRegion(uuid.uuid4(), uuid.uuid4(), label, box(*bounds), frame)


def test_figures_of_two_halves() -> None:
    """100 px and 100 px, half of each in common, on a plane of 1,000 px."""
    a, b = [region(0, 0, 10, 10)], [region(5, 0, 15, 10)]
    agreement = pair_agreement(a, b, plane_px=1000, min_iou=0.3)
    tally = agreement.labels["t"]
    assert (tally.n_a, tally.n_b, tally.matched) == (1, 1, 1)
    assert tally.iou == pytest.approx(50 / 150)
    assert tally.dice == pytest.approx(0.5)
    # observed: 900 of 1,000 px alike; by chance: .1 * .1 + .9 * .9
    assert tally.kappa == pytest.approx((0.9 - 0.82) / 0.18)
    assert tally.f1 == 1
    assert pair_agreement(a, b, plane_px=1000, min_iou=0.5).labels["t"].matched == 0


def test_labels_are_compared_of_matched_regions() -> None:
    a = [region(20 * k, 0, 20 * k + 10, 10, label=name) for k, name in enumerate("ttss")]
    b = [region(20 * k, 0, 20 * k + 10, 10, label=name) for k, name in enumerate("tsss")]
    agreement = pair_agreement(a, b, plane_px=1e4, min_iou=0.5)
    # 3 of 4 alike; by chance: .5 * .25 + .5 * .75
    assert agreement.kappa_of_labels == pytest.approx((0.75 - 0.5) / 0.5)
    assert agreement.labels["t"].matched == 1 and agreement.labels["s"].matched == 2


def test_agreement_of_empty_sets_and_of_frames() -> None:
    empty = pair_agreement([], [], plane_px=100, min_iou=0.5)
    assert (empty.labels, empty.kappa_of_labels) == ({}, None)
    a, b = [region(0, 0, 5, 5, frame=1)], [region(0, 0, 5, 5, frame=2)]
    label_agreement = pair_agreement(a, b, plane_px=100, min_iou=0.5).labels["t"]
    assert (label_agreement.matched, label_agreement.area_both, label_agreement.plane) == (
        0,
        0,
        200,
    )
    assert label_agreement.kappa is not None and label_agreement.kappa < 0
    lone = pair_agreement(a, [], plane_px=25, min_iou=0.5).labels["t"]
    assert (lone.iou, lone.dice, lone.kappa) == (None, 0, 0)


def test_matching_is_the_best_of_all_assignments() -> None:
    rng = np.random.default_rng(5)
    for _ in range(12):
        a, b = (
            [region(x, y, x + 10, y + 10) for x, y in rng.uniform(0, 14, (5, 2))] for _ in range(2)
        )
        total_iou = sum(iou for *_, iou in matches(a, b, min_iou=0.1, by_label=True))
        table = [
            [x.outline.intersection(y.outline).area / x.outline.union(y.outline).area for y in b]
            for x in a
        ]
        table = [[iou if iou >= 0.1 else 0 for iou in row] for row in table]
        best = max(
            sum(table[i][j] for i, j in enumerate(order)) for order in permutations(range(5))
        )
        assert total_iou == pytest.approx(best)


def test_findings_and_merged_regions() -> None:
    a = [region(0, 0, 10, 10), region(40, 0, 50, 10), region(80, 0, 90, 10)]
    b = [region(0, 0, 10, 9), region(40, 0, 50, 10, label="s")]
    rows = findings([a, b], min_iou=0.5)
    assert [job.state for job in rows] == ["label", "missing", "agreed"]
    assert rows[2].iou == pytest.approx(0.9)
    assert {item.id for item in rows} == {finding.id for finding in findings([a, b], min_iou=0.5)}
    two = merged([box(0, 0, 10, 10), box(5, 0, 15, 10)], readers=2)
    three = merged([box(0, 0, 10, 10), box(5, 0, 15, 10), box(8, 0, 20, 10)], readers=3)
    assert (two.area, three.area) == (150, 100)  # either; any two: 5 to 15
    assert merged([box(0, 0, 10, 10)], readers=3).is_empty
