"""Votes of hits, with hand-made hits whose weights can be worked out."""

from __future__ import annotations

import uuid
from types import SimpleNamespace

import pytest

from portal.annotations.models import Label
from portal.search.selectors.facets import Facets
from portal.search.selectors.hits import Hit, best_per_case
from portal.search.selectors.votes import diagnosis_tally, label_tally

TUMOUR, NORMAL = Label(name="Tumour", pk=uuid.uuid4()), Label(name="Normal", pk=uuid.uuid4())


def hits(*rows):
    """(case, distance, label, is_close) each."""
    cases = {row[0]: uuid.uuid4() for row in rows}
    return [
        Hit(
            rank,
            float(distance),
            rank,
            SimpleNamespace(
                label=label,
                canvas=SimpleNamespace(
                    case_id=cases[name], case=SimpleNamespace(diagnosis=f"of {name}"[:7])
                ),
            ),
            is_close=is_close,
        )
        for rank, (name, distance, label, is_close) in enumerate(rows, start=1)
    ]


def weights(tally):
    return {vote.name: round(vote.weight, 4) for vote in tally.votes}


def test_a_hit_twice_as_far_has_half_the_weight():
    tally = label_tally(hits(("a", 1, TUMOUR, None), ("b", 2, NORMAL, None)))
    assert weights(tally) == {"Tumour": 0.6667, "Normal": 0.3333}
    assert [(vote.cases, vote.regions) for vote in tally.votes] == [(1, 1), (1, 1)]
    assert (tally.cases, tally.silent, tally.dissent.rank) == (2, 0, 2)


def test_the_nearest_dissenting_hit_does_not_depend_on_order():
    # A case's other regions stand behind its nearest, before the next case.
    rows = [("a", 1, TUMOUR, None), ("a", 5, NORMAL, None), ("b", 3, NORMAL, None)]
    rows += [("c", 2, TUMOUR, None)]
    assert label_tally(hits(*rows)).dissent.distance == 3


def test_a_case_has_one_vote_for_any_number_of_regions():
    rows = [("a", 2, NORMAL, None)] * 9 + [("b", 2, TUMOUR, None)]
    tally = label_tally(hits(*rows))
    assert weights(tally) == {"Normal": 0.5, "Tumour": 0.5}
    assert tally.votes[0].regions == 9


def test_a_copy_of_the_region_does_not_outweigh_other_hits():
    others = [(f"b{i}", 4, NORMAL, None) for i in range(10)]
    tally = label_tally(hits(("a", 0, TUMOUR, None), *others))
    assert weights(tally) == {"Tumour": 0.5, "Normal": 0.5}


def test_only_close_hits_with_a_value_vote():
    tally = label_tally(hits(("a", 1, TUMOUR, True), ("b", 2, None, True), ("c", 3, NORMAL, False)))
    assert weights(tally) == {"Tumour": 1.0}
    assert (tally.cases, tally.silent, tally.dissent) == (1, 1, None)
    assert label_tally(hits(("a", 1, TUMOUR, False))).votes == ()
    assert label_tally([]).votes == ()


def test_diagnoses_have_votes_and_a_base_rate():
    rows = hits(("one", 1, None, None), ("One", 1, None, None), ("two", 1, None, None))
    facets = Facets(9, 5, {}, {"diagnosis": {"of one": 3}})
    tally = diagnosis_tally(rows, facets)
    assert weights(tally) == {"of one": 0.6667, "of two": 0.3333}
    assert [vote.base for vote in tally.votes] == [(3, 5), (0, 5)]


def test_one_hit_per_case_is_the_best_with_the_others_attached():
    best = best_per_case(
        tuple(hits(("a", 1, None, None), ("b", 2, None, None), ("a", 3, None, None)))
    )
    assert [(hit.rank, hit.distance) for hit in best] == [(1, 1.0), (2, 2.0)]
    assert [other.distance for other in best[0].also] == [3.0]


@pytest.mark.parametrize(
    ("p_value", "text"),
    [(None, ""), (0.003, "99.7"), (0.0004, "99.9"), (1.0, "0.0"), (0.0, "99.9")],
)
def test_closer_than_is_rounded_down(p_value, text):
    hit = Hit(1, 1.0, 1, SimpleNamespace(), p_value=p_value)
    assert hit.closer_than == text
