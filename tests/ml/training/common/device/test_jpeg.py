"""JPEG on the device against the library that writes the files."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch

from ml.errors import ShapeError
from ml.training.common.device.jpeg import compressed
from tests.ml.training.roi.conftest import dense_tissue


@pytest.mark.parametrize("quality", [35, 60, 88])
def test_an_image_comes_back_as_from_a_file(quality):
    image = dense_tissue(64, 96)
    coded = cv2.imencode(".jpg", image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    expected = cv2.imdecode(coded, cv2.IMREAD_COLOR_RGB).astype(float)
    images = torch.from_numpy(image.astype(np.float32)).permute(2, 0, 1)[None]
    found = compressed(images, torch.tensor([quality]))[0].permute(1, 2, 0).numpy()
    lost = np.abs(expected - image).mean()
    # The library rounds its planes to whole numbers on the way.
    assert np.abs(found - expected).mean() < 0.5 * lost


def test_each_image_has_its_own_quality():
    image = torch.from_numpy(dense_tissue(32, 32).astype(np.float32)).permute(2, 0, 1)
    both = compressed(torch.stack([image, image]), torch.tensor([20, 95]))
    lost = (both - image).abs().mean(dim=(1, 2, 3))
    assert lost[0] > 2 * lost[1]


def test_sides_that_no_block_fits_are_refused():
    with pytest.raises(ShapeError, match="sides in multiples of 16"):
        compressed(torch.zeros(1, 3, 24, 32), torch.tensor([50]))
