"""Rivals of the papers: their losses and the matcher by hand, and a whole comparison, tiny."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from ml.errors import BadInputError, UnknownNameError
from ml.training.common.run import TrainingRun
from ml.training.descriptors.cnn import train_contrast
from ml.training.descriptors.contrast import ContrastLearner
from ml.training.descriptors.losses import hardest, hybrid, hynet, sosnet
from ml.training.descriptors.rivals import (
    MATCHER,
    MatcherLearner,
    PairMatcher,
    PairMatcherConfig,
    assignment,
    assignment_loss,
    compare,
    train_matcher,
)
from ml.training.descriptors.views import read_stills
from ml.types import no_progress
from tests.ml.training.descriptors.test_contrast import TINY
from tests.ml.training.descriptors.test_folds import data  # noqa: F401 - a fixture


def test_sosnet_by_hand():
    a = torch.eye(3)
    turned = torch.tensor([[0.6, 0.8, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    # hardest: 1 is nearest to turned 0 (cosine .8), 0 to turned 1 by it, 2 is sqrt(2) from all
    near, far = math.sqrt(0.4), math.sqrt(2)
    hinge = [1 + math.sqrt(0.8) - near, 1 - near, 1 - far]
    squares = sum(max(0, value) ** 2 for value in hinge) / 3
    apart = far - near  # the one second-order distance that differs, seen from 0 and from 1
    expected = squares + 2 * apart / 3
    assert float(sosnet(a, turned)) == pytest.approx(expected, abs=0.01)


def test_hynet_asks_for_like_lengths_and_its_similarity_has_slope_one():
    angle = torch.linspace(0.001, math.pi - 0.001, 2000)
    similarity = hybrid(2 * torch.sin(angle / 2))
    slope = -(similarity[1:] - similarity[:-1]) / (angle[1:] - angle[:-1])
    assert float(slope.max()) == pytest.approx(1.0, abs=2e-3)
    features = torch.randn(5, 7, generator=torch.Generator().manual_seed(0))
    assert hynet(features, features) < hynet(features, 2 * features)
    assert hynet(features, features) < hynet(features, features.roll(1, 0))


def test_the_hardest_negative_is_of_either_view():
    a = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    b = torch.tensor([[0.8, 0.6], [-1.0, 0.0]])
    across = (2 - 2 * a @ b.T).sqrt()
    assert hardest(across, a, b)[1] == pytest.approx(math.sqrt(2 - 1.2), abs=1e-4)


def test_an_assignment_sums_to_one_and_the_bin_takes_the_rest():
    scores = torch.tensor([[9.0, 0.0], [0.0, 9.0], [-9.0, -9.0]])
    found = assignment(scores, torch.tensor(1.0), rounds=100).exp()
    assert torch.allclose(found[:-1].sum(dim=1), torch.ones(3), atol=1e-3)
    assert torch.allclose(found[:, :-1].sum(dim=0), torch.ones(2), atol=1e-3)
    assert found[0, 0] > 0.9 and found[1, 1] > 0.9 and found[2, 2] > 0.9


def test_the_matcher_does_not_care_for_the_order_of_points():
    torch.manual_seed(0)
    matcher = PairMatcher(PairMatcherConfig(dim=8, heads=2, layers=1)).eval()
    for parameter in matcher.parameters():  # as after training: an untrained one has no attention
        torch.nn.init.normal_(parameter, std=0.3)
    a, b = ((torch.randn(n, 8), torch.rand(n, 2)) for n in (4, 5))
    order = torch.tensor([2, 0, 3, 1])
    with torch.no_grad():
        one, other = matcher(a, b), matcher((a[0][order], a[1][order]), b)
    assert torch.allclose(one[order], other[:-1], atol=1e-4)


def test_an_untrained_matcher_takes_the_nearest_neighbour():
    torch.manual_seed(0)
    matcher = PairMatcher(PairMatcherConfig(dim=16)).eval()
    a = torch.randn(30, 16)
    order = torch.randperm(30)
    b = (a + 0.3 * torch.randn(30, 16))[order]
    with torch.no_grad():
        found = matcher((3 * a, torch.rand(30, 2)), (b, torch.rand(30, 2)))[:-1, :-1].argmax(dim=1)
    assert (order[found] == torch.arange(30)).float().mean() > 0.95
    one, other = (torch.nn.functional.normalize(side, dim=1) for side in (a, b))
    assert ((one @ other.T).argmax(dim=1) == found).float().mean() > 0.9


def test_what_has_no_partner_belongs_into_the_bin():
    logs = torch.log(torch.arange(1.0, 13).reshape(3, 4))
    # nodes 0 and 2 of a, 1, 2 and 5 of b: 2 is in both, at (1, 1)
    found = assignment_loss(logs, np.array([0, 2]), np.array([1, 2, 5]))
    expected = -np.mean(np.log([logs[1, 1].exp(), logs[0, 3].exp(), logs[2, 0].exp(), 11.0]))
    assert float(found) == pytest.approx(expected, abs=1e-5)


def test_a_comparison_trains_every_rival_and_goes_on_where_it_stopped(data, tmp_path):  # noqa: F811
    config = dataclasses.replace(TINY, steps=2, network=dataclasses.replace(TINY.network, dim=8))
    stills, held_out = read_stills(data, config.stills, progress=no_progress)
    card = tmp_path / "card.md"
    card.write_text("<!-- figures: rivals -->\n<!-- end figures -->\n")
    found = compare(TrainingRun(config, tmp_path, card=card), stills, held_out)
    assert found["table"] in card.read_text()
    sift = ["sift", "sift (best form)"]
    assert list(found["rows"]) == ["contrast", "sosnet", "hynet", "graph", MATCHER, *sift]
    for row in found["rows"].values():
        assert 0 <= row["all"]["precision"] <= 1
    again = compare(TrainingRun(config, tmp_path), stills, held_out)
    assert again == found
    with pytest.raises(UnknownNameError, match="unknown loss 'softmax'"):
        ContrastLearner(dataclasses.replace(config, loss="softmax"), stills)


def test_the_matcher_learns_in_half_precision_from_about_the_same_losses(
    data,  # noqa: F811
    tmp_path,
    learns_alike,
):
    config = dataclasses.replace(
        TINY, steps=1, network=dataclasses.replace(TINY.network, dim=8), train_cnn=False
    )
    stills, held_out = read_stills(data, config.stills, progress=no_progress)
    train_contrast(
        TrainingRun(dataclasses.replace(config, train_cnn=True), tmp_path), stills, held_out
    )
    start = next(tmp_path.glob("*.safetensors"))
    learns_alike(
        lambda compute: MatcherLearner(config, stills, held_out, start=start, compute=compute)
    )


def test_without_stills_to_score_there_is_nothing_to_compare(data, tmp_path):  # noqa: F811
    stills, _ = read_stills(data, TINY.stills, progress=no_progress)
    with pytest.raises(BadInputError, match="no still of them to validate on"):
        compare(TrainingRun(TINY, tmp_path), stills, [])
    assert not list(tmp_path.iterdir())


def test_the_matcher_is_told_what_it_starts_from(data, tmp_path):  # noqa: F811
    stills, held_out = read_stills(data, TINY.stills, progress=no_progress)
    with pytest.raises(BadInputError, match="start: expected the weights of a trained CNN"):
        train_matcher(TrainingRun(TINY, tmp_path), stills, held_out)


def test_every_process_goes_on_from_the_checkpoints_of_the_first(tmp_path):
    beside = TrainingRun(TINY, tmp_path / ".rank-1", checkpoints=tmp_path)
    assert beside.part(TINY, "hynet").checkpoints == tmp_path / "hynet"
    assert TrainingRun(TINY, tmp_path).part(TINY, "hynet").checkpoints is None
