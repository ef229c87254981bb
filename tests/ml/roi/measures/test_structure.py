"""Sizes and counts of synthetic structures."""

from __future__ import annotations

import cv2
import numpy as np

from ml.roi.measures.structure import (
    GRANULOMETRY_RADII_PX,
    NUCLEI_DIM,
    SPACE_DIM,
    granulometry,
    nuclei,
    open_space,
)


def discs(radius_px, spacing_px):
    channel = np.zeros((224, 224), np.float32)
    for y in range(spacing_px // 2, 224, spacing_px):
        for x in range(spacing_px // 2, 224, spacing_px):
            cv2.circle(channel, (x, y), radius_px, 1.0, -1)
    return channel


def test_granulometry_peaks_at_the_size_of_the_discs():
    for radius, expected in ((3, 4), (6, 7), (14, 16)):
        shares = granulometry(discs(radius, 4 * radius))
        assert GRANULOMETRY_RADII_PX[int(shares.argmax())] == expected


def test_the_number_and_size_of_nuclei_are_measured():
    vector = nuclei(discs(5, 28))
    assert vector.shape == (NUCLEI_DIM,)
    count, area = np.exp(vector[0]) * 224**2 / 5e4, np.exp(vector[1])
    assert count == 64 or abs(count - 64) < 1
    assert abs(area - np.pi * 25) < 20


def test_no_nuclei_give_zeros():
    assert not nuclei(np.zeros((224, 224), np.float32)).any()


def test_open_space_is_the_share_of_lumen():
    density = 1 - discs(20, 75)
    vector = open_space(density)
    assert vector.shape == (SPACE_DIM,)
    assert abs(vector[0] - (1 - density.mean())) < 0.03
    assert abs(np.expm1(vector[1]) - 9) < 0.5
