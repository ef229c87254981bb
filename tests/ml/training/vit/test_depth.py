"""Depth of a still: random, from a file, or by a DPT head."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ml.errors import BadInputError, CorruptFileError, WeightsError
from ml.training.vit.depth import DptDepth, folder_depth, scaled_depth, synthetic_depth


def test_the_random_surface_is_smooth_positive_and_deterministic():
    depth = synthetic_depth(np.random.default_rng(1), (60, 90), relief=0.4)
    assert depth.shape == (60, 90) and depth.min() > 0
    assert np.isclose(np.median(depth), 1, atol=0.02)
    assert 0.2 < np.abs(np.log(depth)).max() <= 0.8
    assert max(np.abs(np.diff(depth, axis=a)).max() for a in (0, 1)) < 0.1
    again = synthetic_depth(np.random.default_rng(1), (60, 90), relief=0.4)
    assert np.array_equal(depth, again)


def test_without_relief_the_surface_is_flat():
    assert np.allclose(synthetic_depth(np.random.default_rng(0), (20, 20), relief=0), 1)


def test_depth_without_a_unit_is_scaled_to_median_one():
    assert np.allclose(scaled_depth(np.array([[2.0, 4.0, 8.0]])), [[0.5, 1, 2]])
    assert np.allclose(scaled_depth(np.array([[2.0, 4.0, 8.0]]), relief=2), [[0.25, 1, 4]])
    assert scaled_depth(np.array([[0.0, 4.0, 8.0]])).min() == 0.05
    with pytest.raises(CorruptFileError, match="positive median"):
        scaled_depth(np.zeros((2, 2)))


def test_given_depth_is_read_and_resized(tmp_path):
    np.save(tmp_path / "a.npy", np.full((10, 10), 3.0))
    assert np.allclose(folder_depth(tmp_path, "a", (20, 30)), np.ones((20, 30)))
    with pytest.raises(BadInputError, match=r"b\.npy: expected"):
        folder_depth(tmp_path, "b", (20, 30))
    (tmp_path / "c.npy").write_bytes(b"nothing")
    with pytest.raises(CorruptFileError, match=r"c\.npy"):
        folder_depth(tmp_path, "c", (20, 30))


def dpt(folder):
    from transformers import Dinov2Config, DPTConfig, DPTForDepthEstimation

    torch.manual_seed(0)
    backbone = Dinov2Config(
        hidden_size=16,
        num_hidden_layers=4,
        num_attention_heads=2,
        mlp_ratio=2,
        image_size=56,
        patch_size=14,
        out_features=["stage1", "stage2", "stage3", "stage4"],
        reshape_hidden_states=False,
    )
    config = DPTConfig(
        backbone_config=backbone,
        is_hybrid=False,
        hidden_size=16,
        neck_hidden_sizes=[8, 8, 8, 8],
        fusion_hidden_size=8,
        reassemble_factors=[4, 2, 1, 0.5],
        add_projection=False,
    )
    model = DPTForDepthEstimation(config)
    with torch.no_grad():
        model.head.head[-2].bias.fill_(1)  # a random head may give no positive depth at all
    model.save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("inverse", [False, True])
def test_a_saved_dpt_on_dinov2_is_loaded_and_gives_depth(tmp_path, inverse):
    image = np.random.default_rng(0).integers(0, 256, (70, 100, 3)).astype(np.uint8)
    depth = DptDepth(dpt(tmp_path), inverse=inverse)(image)
    assert depth.shape == (70, 100) and (depth > 0).all()
    assert np.isclose(np.median(depth), 1, rtol=0.05)


def test_a_dpt_of_the_published_shape_is_loaded_and_gives_depth(tmp_path):
    """Shape of facebook/dpt-dinov2-small-nyu (taps after layers 3, 6, 9, 12), 24 wide, 126 px."""
    from transformers import Dinov2Config, DPTConfig, DPTForDepthEstimation

    torch.manual_seed(0)
    backbone = Dinov2Config(
        hidden_size=24,
        num_attention_heads=2,
        image_size=126,
        patch_size=14,
        out_indices=[3, 6, 9, 12],
        apply_layernorm=False,
        reshape_hidden_states=False,
    )
    config = DPTConfig(
        backbone_config=backbone,
        neck_hidden_sizes=[8, 8, 16, 16],
        fusion_hidden_size=256,
        use_bias_in_fusion_residual=False,
        add_projection=True,
    )
    model = DPTForDepthEstimation(config)
    with torch.no_grad():
        model.head.head[-2].bias.fill_(1)  # a random head may give no positive depth at all
    model.save_pretrained(tmp_path)
    depth_of = DptDepth(str(tmp_path))
    assert (depth_of.side_px, depth_of.patch_px) == (126, 14)
    image = np.random.default_rng(0).integers(0, 256, (60, 90, 3)).astype(np.uint8)
    depth = depth_of(image)
    assert depth.shape == (60, 90) and (depth > 0).all()
    assert np.isclose(np.median(depth), 1, rtol=0.05)


def test_a_missing_depth_model_raises_an_error_without_its_folder(tmp_path):
    with pytest.raises(WeightsError, match="'nothing'") as caught:
        DptDepth(str(tmp_path / "nothing"))
    assert str(tmp_path) not in str(caught.value)
