"""The attentional graph network: equations 2 to 4."""

from __future__ import annotations

import math

import pytest
import torch

from ml.errors import ShapeError, UnknownNameError
from ml.networks import keypoint_gnn
from ml.networks.keypoint_gnn import KeypointGnn, KeypointGnnConfig, normalised_positions


def network(position: str = "image", dim: int = 6, **more) -> KeypointGnn:
    torch.manual_seed(5)
    config = KeypointGnnConfig(dim=dim, position=position, position_hidden=(4,), hidden=7, **more)
    made = KeypointGnn(config).eval()
    for last in (made.position[-1], made.update[-1]):
        torch.nn.init.normal_(last.weight, std=0.5)
        torch.nn.init.normal_(last.bias, std=0.5)
    return made


def test_messages_of_two_points_equal_hand_worked_values():
    net = network(dim=2)
    for layer in (net.query, net.key, net.value):
        torch.nn.init.eye_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
    encoded = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    # Q1 K = (1, 0), Q2 K = (0, 4), over sqrt(2)
    first = math.exp(1 / math.sqrt(2)) / (math.exp(1 / math.sqrt(2)) + 1)
    second = 1 / (1 + math.exp(4 / math.sqrt(2)))
    expected = torch.tensor([[first, 2 * (1 - first)], [second, 2 * (1 - second)]])
    assert torch.allclose(net.messages(encoded, torch.zeros(2, 2)), expected, atol=1e-6)


def test_the_network_equals_equations_2_to_4():
    net = network()
    features, positions = torch.randn(5, 6), torch.randn(5, 2)
    with torch.no_grad():
        unit = [f / f.norm() for f in features]
        f0 = [f + net.position(p) for f, p in zip(unit, positions, strict=True)]
        rows = []
        for i in range(5):
            query = net.query.weight @ f0[i] + net.query.bias
            weights = []
            for j in range(5):
                key = net.key.weight @ f0[j] + net.key.bias
                weights.append(math.exp(float(query @ key) / math.sqrt(6)))
            message = torch.zeros(6)
            for j in range(5):
                value = net.value.weight @ f0[j] + net.value.bias
                message += weights[j] / sum(weights) * value
            rows.append(f0[i] + net.update(torch.cat([unit[i], message])))
        assert torch.allclose(net(features, positions), torch.stack(rows), atol=1e-5)


def test_the_untrained_network_returns_the_features_of_the_cnn():
    net = KeypointGnn(KeypointGnnConfig(dim=6))
    features = torch.randn(4, 6)
    unit = torch.nn.functional.normalize(features, dim=1)
    assert torch.allclose(net(features, torch.randn(4, 2)), unit)


def test_the_order_of_the_points_does_not_matter():
    net, order = network(), torch.tensor([3, 0, 4, 1, 2])
    features, positions = torch.randn(5, 6), torch.randn(5, 2)
    with torch.no_grad():
        expected = net(features, positions)
        assert torch.allclose(net(features[order], positions[order]), expected[order], atol=1e-5)


def test_cosine_attention_uses_the_nearest_points_and_the_learned_scale():
    net = network(attention="cosine", nearest=2)
    torch.nn.init.constant_(net.log_scale, math.log(3.0))
    encoded = torch.randn(4, 6)
    where = torch.tensor([[0.0, 0.0], [0.1, 0.0], [1.0, 0.0], [1.3, 0.0]])
    with torch.no_grad():
        (rows,) = net.attention(encoded, where)
        query, key = net.query(encoded), net.key(encoded)
        for i, partner in enumerate((1, 0, 3, 2)):
            cosines = torch.cosine_similarity(query[i][None], key[[i, partner]])
            expected = torch.zeros(4)
            expected[[i, partner]] = torch.softmax(3.0 * cosines, dim=0)
            assert torch.allclose(rows[i], expected, atol=1e-5)


def test_attention_does_not_depend_on_the_chunk_size(monkeypatch):
    net, features, positions = network(nearest=4), torch.randn(11, 6), torch.randn(11, 2)
    with torch.no_grad():
        expected = net(features, positions)
        monkeypatch.setattr(keypoint_gnn, "QUERY_CHUNK", 3)
        assert torch.allclose(net(features, positions), expected, atol=1e-5)


@pytest.mark.parametrize("position", ["image", "radial", "none"])
def test_zero_points_and_one_point_are_accepted(position):
    net = network(position)
    for n in (0, 1):
        xy = torch.full((n, 2), 7.0)
        where = normalised_positions(xy, size_px=(20, 30), position=position)
        out = net(torch.randn(n, 6), where)
        assert out.shape == (n, 6)
        assert out.isfinite().all()


def test_image_positions_are_relative_to_the_centre_in_half_sides():
    xy = torch.tensor([[0.0, 0.0], [199.0, 99.0], [99.5, 49.5]])
    positions = normalised_positions(xy, size_px=(100, 200), position="image")
    assert torch.allclose(positions, torch.tensor([[-0.995, -0.495], [0.995, 0.495], [0.0, 0.0]]))


def test_radial_positions_are_invariant_to_similarity_transforms():
    net = network("radial")
    xy = torch.rand(9, 2) * 300
    turn = torch.tensor([[math.cos(1.0), -math.sin(1.0)], [math.sin(1.0), math.cos(1.0)]])
    moved = 1.7 * xy @ turn.T + torch.tensor([40.0, -9.0])
    features = torch.randn(9, 6)
    with torch.no_grad():
        rows = [
            net(features, normalised_positions(p, size_px=(300, 300), position="radial"))
            for p in (xy, moved)
        ]
        plain = network("image")
        others = [
            plain(features, normalised_positions(p, size_px=(300, 300), position="image"))
            for p in (xy, moved)
        ]
    assert torch.allclose(rows[0], rows[1], atol=1e-4)
    assert not torch.allclose(others[0], others[1], atol=1e-2)


def test_inconsistent_input_raises_an_error():
    with pytest.raises(UnknownNameError, match="'polar'"):
        KeypointGnn(KeypointGnnConfig(position="polar"))
    with pytest.raises(UnknownNameError, match="'hard'"):
        KeypointGnn(KeypointGnnConfig(attention="hard"))
    with pytest.raises(ShapeError, match=r"got \(3, 6\) and \(2, 2\)"):
        network()(torch.zeros(3, 6), torch.zeros(2, 2))
