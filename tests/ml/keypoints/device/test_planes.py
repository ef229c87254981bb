"""What is done to tensors is what OpenCV does to images, within stated tolerances."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch

from ml.keypoints.device.planes import equalised, filtered, gaussians, looked_up, warped
from ml.keypoints.pixels import equalise


def plane(height=60, width=80, seed=0):
    rng = np.random.default_rng(seed)
    smooth = cv2.GaussianBlur(rng.standard_normal((height, width)), (0, 0), 2.0)
    return np.clip(128 + 260 * smooth, 0, 255).astype(np.uint8)


def tensor(images, compute):
    return torch.from_numpy(np.stack(images).astype(np.float32))[:, None].to(compute.device)


def test_many_images_are_warped_each_by_its_own_matrix(fast):
    images = [plane(seed=i) for i in range(3)]
    matrices = np.tile(np.eye(3), (3, 1, 1))
    matrices[1, :2, 2] = 3.4, -2.2
    matrices[2] = [[0.9, 0.2, 4], [-0.1, 1.1, -3], [4e-4, 1e-4, 1]]
    modes = {"zeros": cv2.BORDER_CONSTANT, "reflection": cv2.BORDER_REFLECT_101}
    for border, mode in modes.items():
        found = warped(tensor(images, fast), matrices, (70, 50), border=border).cpu().numpy()
        for i, image in enumerate(images):
            flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
            wanted = cv2.warpPerspective(image, matrices[i], (70, 50), flags=flags, borderMode=mode)
            # OpenCV rounds places to a thirty-second of a pixel and values to whole ones
            assert np.abs(found[i, 0] - wanted).mean() < 0.7


def test_values_are_looked_up_as_by_remap(fast):
    image = plane()
    at = np.random.default_rng(1).uniform(-3, 84, (20, 30, 2)).astype(np.float32)
    wanted = cv2.remap(image, at[..., 0], at[..., 1], 1, borderMode=cv2.BORDER_REPLICATE)
    found = looked_up(tensor([image], fast), torch.from_numpy(at)[None].to(fast.device))
    assert np.abs(found[0, 0].cpu().numpy() - wanted).mean() < 0.7


def test_each_image_has_a_kernel_of_its_own(fast):
    images, kernels = [plane(seed=i) for i in range(2)], np.zeros((2, 5, 5), np.float32)
    kernels[0, 2, 2], kernels[1] = 1, np.random.default_rng(0).random((5, 5))
    kernels[1] /= kernels[1].sum()
    found = filtered(tensor(images, fast), torch.from_numpy(kernels).to(fast.device)).cpu().numpy()
    assert np.array_equal(found[0, 0], images[0].astype(np.float32))
    wanted = cv2.filter2D(images[1].astype(np.float32), -1, kernels[1])
    assert np.abs(found[1, 0] - wanted).max() < 0.15  # a GPU may multiply in fewer bits
    both = filtered(tensor(images, fast), gaussians(torch.tensor([0.0, 1.1]).to(fast.device), 5))
    assert np.allclose(both[0, 0].cpu(), images[0])
    wanted = cv2.GaussianBlur(images[1].astype(np.float32), (11, 11), 1.1)
    assert np.abs(both[1, 0].cpu().numpy() - wanted).max() < 0.15


@pytest.mark.parametrize("size", [(64, 96), (61, 83), (64, 83)])
def test_contrast_is_equalised_to_a_grey_level_of_opencv(fast, size):
    image = plane(*size)
    found = equalised(tensor([image], fast))[0, 0].cpu().numpy()
    apart = np.abs(found - equalise(image).astype(int))
    assert apart.max() <= 1 and (apart > 0).mean() < 0.02
