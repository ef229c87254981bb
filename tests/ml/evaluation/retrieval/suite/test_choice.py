"""The rule of choice, by hand."""

from __future__ import annotations

import pytest

from ml.evaluation.retrieval.suite.choice import choose, margins_of

BASELINES = ("hsv", "lbp")


def cells(**scores):
    """Sets one, two and three, as they are and swapped; two baselines at 0.3 and 0.2."""
    out = {}
    for number, name in enumerate(("one", "two", "three")):
        for condition, (hsv, lbp) in (("as_is", (0.3, 0.2)), ("swapped", (0.1, 0.2))):
            by_encoder = {encoder: values[number] for encoder, values in scores.items()}
            out[name, "t", condition] = {"hsv": hsv, "lbp": lbp, **by_encoder}
    return out


def test_the_margin_is_over_the_best_baseline_of_each_cell():
    margins = margins_of(cells(a=(0.5, 0.4, 0.3)), ["a"], BASELINES)
    # 0.5 - 0.3 as it is, 0.5 - 0.2 swapped
    assert margins["a"].sets == pytest.approx({"one": 0.25, "two": 0.15, "three": 0.05})
    assert margins["a"].mean == pytest.approx(0.15)
    assert margins["a"].worst == pytest.approx(0.05) and margins["a"].passes


def test_the_weight_of_a_set_does_not_depend_on_its_tasks():
    regions = cells(a=(0.5, 0.4, 0.3))
    regions["one", "other", "as_is"] = {"hsv": 0.3, "lbp": 0.2, "a": 0.3}
    margin = margins_of(regions, ["a"], BASELINES)["a"]
    assert margin.sets["one"] == pytest.approx((0.2 + 0.3 + 0.0) / 3)
    assert margin.mean == pytest.approx((margin.sets["one"] + 0.15 + 0.05) / 3)


def test_an_encoder_below_a_baseline_on_one_set_is_not_chosen():
    regions = cells(bold=(0.9, 0.9, 0.1), even=(0.4, 0.4, 0.4))
    choice = choose(margins_of(regions, ["bold", "even"], BASELINES))
    assert choice.margins["bold"].mean > choice.margins["even"].mean
    assert choice.chosen == "even" and choice.passes


def test_the_best_mean_is_chosen_as_not_passing_if_no_encoder_passes():
    choice = choose(margins_of(cells(a=(0.9, 0.9, 0.1), b=(0.1, 0.1, 0.1)), ["a", "b"], BASELINES))
    assert choice.chosen == "a" and not choice.passes


def test_leaving_out_a_set_can_change_the_choice_at_a_cost():
    regions = cells(a=(0.9, 0.3, 0.3), b=(0.3, 0.5, 0.5))
    choice = choose(margins_of(regions, ["a", "b"], BASELINES))
    # margins: a .65 .05 .05, b .05 .25 .25
    assert choice.chosen == "a"
    left = choice.left_out["one"]
    assert (left.chosen, left.best) == ("b", "a")
    assert left.margin == pytest.approx(0.05) and left.best_margin == pytest.approx(0.65)
    assert [choice.left_out[name].chosen for name in ("two", "three")] == ["a", "a"]
    assert choice.cost == pytest.approx(0.25 - (0.05 + 0.05 + 0.05) / 3)


def test_leave_one_out_of_one_set_is_empty():
    margins = {key: value for key, value in cells(a=(0.5, 0.4, 0.3)).items() if key[0] == "one"}
    choice = choose(margins_of(margins, ["a"], BASELINES))
    assert choice.left_out == {} and choice.cost is None
