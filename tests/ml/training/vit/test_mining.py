"""Mining of triplets: hand-worked distances and losses, slow versions, cycle consistency."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest
import torch

from ml.training.vit.mining import (
    contrastive_loss,
    cosine_distance,
    hardest_negatives,
    near_patches,
    patch_centres,
    patch_pairs,
    random_negatives,
    row_distance,
    sample_map,
    triplet_loss,
)
from ml.training.vit.novel_view import synthesise_view

CAMERA = np.array([[100, 0, 32.0], [0, 100, 24.0], [0, 0, 1]])
SHAPE = (48, 64)


def moved_view(depth, translation=(0, 0, 0), turn=0.0):
    noise = np.random.default_rng(0).integers(0, 256, (*SHAPE, 3)).astype(np.uint8)
    matrix = np.eye(4)
    matrix[:3, :3] = cv2.Rodrigues(np.array([0, 0, turn]))[0]
    matrix[:3, 3] = translation
    return synthesise_view(noise, depth, camera=CAMERA, T_t_from_s=matrix)


def rows(count, dim=5, seed=0):
    return torch.randn(count, dim, generator=torch.Generator().manual_seed(seed))


def test_distances_equal_hand_worked_values():
    # equation 14: equal 0, at right angles sqrt 2, opposite 2; lengths do not count
    a = torch.tensor([[1.0, 0.0]])
    b = torch.tensor([[3.0, 0.0], [0.0, 2.0], [-5.0, 0.0]])
    assert torch.allclose(cosine_distance(a, b), torch.tensor([[0.001, math.sqrt(2), 2.0]]))
    assert torch.allclose(row_distance(a.repeat(3, 1), b), cosine_distance(a, b)[0])


def test_the_distance_has_a_finite_slope_where_it_is_zero():
    a = torch.tensor([[1.0, 2.0]], requires_grad=True)
    row_distance(a, a.detach()).sum().backward()
    assert torch.isfinite(a.grad).all()


def test_the_loss_equals_a_hand_worked_value():
    # equation 13, m = 1: d(A, P) = sqrt 2, d(A, N) = 2 gives 0.414; P = A, N opposite gives 0
    anchor = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    positive = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    negative = torch.tensor([[-1.0, 0.0], [-1.0, 0.0]])
    loss = triplet_loss(anchor, positive, negative, margin=1.0)
    assert float(loss) == pytest.approx((math.sqrt(2) - 2 + 1) / 2, abs=1e-5)


def test_the_hardest_negative_equals_a_hand_worked_value():
    # the first row is the partner; the third is nearest to the anchor, the fourth to the positive
    anchor, positive = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    target = torch.tensor([[0.0, 1.0], [-1.0, 0.0], [1.0, 0.3], [0.1, 1.0]])
    near = torch.tensor([[True, False, False, False]])
    assert hardest_negatives(anchor, positive, target, near).tolist() == [3]
    near = torch.tensor([[True, False, False, True]])
    assert hardest_negatives(anchor, positive, target, near).tolist() == [2]


def test_the_hardest_negatives_agree_with_loops():
    anchor, positive, target = rows(6), rows(6, seed=1), rows(9, seed=2)
    near = torch.rand(6, 9, generator=torch.Generator().manual_seed(3)) < 0.3

    def distance(u, v):
        return math.sqrt(2 - 2 * float(u @ v) / float(u.norm() * v.norm()))

    slow = []
    for k in range(6):
        hard = {
            i: min(distance(anchor[k], target[i]), distance(positive[k], target[i]))
            for i in range(9)
            if not near[k, i]
        }
        slow.append(min(hard, key=hard.get))
    assert hardest_negatives(anchor, positive, target, near).tolist() == slow


def test_random_negatives_are_never_excluded_and_deterministic():
    near = torch.eye(5, dtype=torch.bool)[:4]
    drawn = [random_negatives(near, torch.Generator().manual_seed(s)) for s in range(20)]
    assert all((d != torch.arange(4)).all() for d in drawn)
    assert len({tuple(d.tolist()) for d in drawn}) > 5
    assert torch.equal(drawn[0], random_negatives(near, torch.Generator().manual_seed(0)))


def test_the_contrastive_loss_agrees_with_loops():
    anchor, positive, target = (
        torch.nn.functional.normalize(r, dim=1) for r in (rows(4), rows(4, seed=1), rows(7, seed=2))
    )
    near = torch.zeros(4, 7, dtype=torch.bool)
    near[1, 2] = near[3, :5] = True
    total = 0.0
    for k in range(4):
        positive_term = math.exp(float(anchor[k] @ positive[k]) / 0.1)
        others = sum(
            math.exp(float(anchor[k] @ target[i]) / 0.1) for i in range(7) if not near[k, i]
        )
        total -= math.log(positive_term / (positive_term + others)) / 4
    loss = contrastive_loss(anchor, positive, target, near, temperature=0.1)
    assert float(loss) == pytest.approx(total, rel=1e-4)


def test_patch_centres_are_between_the_middle_pixels():
    assert patch_centres((1, 3), 8).tolist() == [[3.5, 3.5], [11.5, 3.5], [19.5, 3.5]]


def test_a_static_camera_pairs_each_patch_with_itself():
    pairs = patch_pairs(moved_view(np.ones(SHAPE)), patch_px=8, cycle_px=0.1)
    assert np.array_equal(pairs.source, np.arange(48)) and np.array_equal(
        pairs.target, pairs.source
    )
    assert np.allclose(pairs.xy_t, patch_centres((6, 8), 8))


def test_a_shift_by_a_patch_pairs_each_with_its_left_neighbour():
    pairs = patch_pairs(moved_view(np.ones(SHAPE), (-0.08, 0, 0)), patch_px=8, cycle_px=0.1)
    assert np.array_equal(pairs.target, pairs.source - 1)
    assert not (pairs.source % 8 == 0).any() and len(pairs) == 42


def test_p_gt_is_that_of_the_exact_map_and_inside_its_patch():
    view = moved_view(np.full(SHAPE, 2.0), (0.1, 0.05, -0.1), turn=0.3)
    pairs = patch_pairs(view, patch_px=8, cycle_px=1.0)
    centre = (patch_centres((6, 8), 8)[pairs.source] - (32, 24)) / 100 * 2
    cosine, sine = math.cos(0.3), math.sin(0.3)
    x = cosine * centre[:, 0] - sine * centre[:, 1] + 0.1
    y = sine * centre[:, 0] + cosine * centre[:, 1] + 0.05
    truth = np.stack([x, y], axis=1) / 1.9 * 100 + (32, 24)
    assert len(pairs) > 20 and np.abs(pairs.xy_t - truth).max() < 1e-3
    cell = np.floor((truth + 0.5) / 8)
    assert np.array_equal(pairs.target, cell[:, 1] * 8 + cell[:, 0])


def test_the_cycle_check_drops_only_hidden_patches():
    # a near strip hides wall columns 36 to 39 of the view: the patch of columns 40 to 47, whose
    # middle goes to 38.5, is inside the view but seen no more
    depth = np.full(SHAPE, 2.0)
    depth[:, 48:56] = 1.0
    view = moved_view(depth, (-0.1, 0, 0))
    free = patch_pairs(view, patch_px=8)
    pairs = patch_pairs(view, patch_px=8, cycle_px=1.5)
    assert set((free.source % 8).tolist()) == {1, 2, 3, 4, 5, 6, 7}
    assert set((pairs.source % 8).tolist()) == {1, 2, 3, 4, 6, 7}


def test_patches_with_an_untrusted_pixel_give_no_pair():
    valid = np.ones(SHAPE, bool)
    valid[0, 0] = valid[47, 63] = False
    pairs = patch_pairs(moved_view(np.ones(SHAPE)), patch_px=8, valid=valid)
    assert np.array_equal(pairs.source, np.arange(1, 47))


def test_near_patches_equal_hand_worked_values():
    xy_t = np.array([[11.5, 3.5], [15.0, 3.5]], np.float32)
    assert near_patches(xy_t, (1, 4), 8, 0).tolist() == [
        [False, True, False, False],
        [False, True, False, False],
    ]
    # 15.0 is 3.5 px right of the second centre and 4.5 px left of the third
    assert near_patches(xy_t, (1, 4), 8, 1.0).tolist() == [
        [False, True, False, False],
        [False, True, True, False],
    ]


def test_sampling_at_a_centre_gives_the_patch_and_half_way_the_mean():
    features = torch.nn.functional.normalize(rows(6, 4), dim=1).T.reshape(4, 2, 3)
    xy = torch.from_numpy(patch_centres((2, 3), 8))
    assert torch.allclose(sample_map(features, xy, patch_px=8), features.flatten(1).T, atol=1e-5)
    half = sample_map(features, torch.tensor([[7.5, 3.5], [-9.0, 3.5]]), patch_px=8)
    mean = (features[:, 0, 0] + features[:, 0, 1]) / 2
    assert torch.allclose(half[0], mean / mean.norm(), atol=1e-5)
    assert torch.allclose(half[1], features[:, 0, 0], atol=1e-5)
