"""Parts of the baselines for encoders: colour histograms and bags of visual words."""

from __future__ import annotations

import cv2
import numpy as np
from shapely.geometry.base import BaseGeometry

from ml.types import ArrayF32, ImageU8

_HSV_BINS = (8, 8, 8)
"""Bins of hue, saturation and value."""
_VOCABULARY_SAMPLE = 30_000
"""Largest number of descriptors that a vocabulary is learned from."""


def hsv_histogram(pixels: ImageU8, mask: ImageU8) -> ArrayF32:
    """Square root of the joint HSV histogram of 8 x 8 x 8 bins, (512,) float32."""
    hsv = cv2.cvtColor(pixels, cv2.COLOR_RGB2HSV)
    counts = cv2.calcHist([hsv], [0, 1, 2], mask, _HSV_BINS, [0, 180, 0, 256, 0, 256]).ravel()
    return np.asarray(np.sqrt(counts / max(counts.sum(), 1.0)), np.float32)


def root_sift(pixels: ImageU8, mask: ImageU8, *, contrast: float, max_count: int = 0) -> ArrayF32:
    """RootSIFT descriptors of an image, (N, 128) float32, N possibly 0.

    Args:
        contrast: least contrast of a key point. most: largest number of key points, 0 for all.
    Source: Arandjelovic and Zisserman 2012.
    """
    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    sift = cv2.SIFT_create(nfeatures=max_count, contrastThreshold=contrast)  # type: ignore[attr-defined]
    _, descriptors = sift.detectAndCompute(grey, mask)
    if descriptors is None:
        return np.zeros((0, 128), np.float32)
    return np.sqrt(descriptors / np.maximum(descriptors.sum(axis=1, keepdims=True), 1.0)).astype(
        np.float32
    )


def visual_words(descriptors: ArrayF32, *, count: int, seed: int) -> ArrayF32:
    """Learn (count, D) words by k-means of a sample of descriptors (N, D); N if there are fewer."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(descriptors))[:_VOCABULARY_SAMPLE]
    sample = descriptors[order].astype(np.float32)
    cv2.setRNGSeed(seed)
    stop = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, 30, 1e-4)
    count = min(count, len(sample))
    _, _, centres = cv2.kmeans(sample, count, None, stop, 1, cv2.KMEANS_PP_CENTERS)  # type: ignore[call-overload]
    return np.asarray(centres, np.float32)


def bag_of_words(descriptors: ArrayF32, words: ArrayF32) -> ArrayF32:
    """Square root of the share of each word (W, D) among descriptors (N, D), (W,) float32."""
    bag = np.zeros(len(words), np.float32)
    if len(descriptors):
        distance = (words**2).sum(axis=1) - 2 * descriptors @ words.T
        counts = np.bincount(distance.argmin(axis=1), minlength=len(words))
        bag[:] = np.sqrt(counts / counts.sum())
    return bag


def region_mask(region_px: BaseGeometry, shape: tuple[int, ...]) -> ImageU8:
    """Mask of a polygon in pixels, (H, W) uint8, 255 inside; holes are 0."""
    mask = np.zeros(shape, np.uint8)
    for part in getattr(region_px, "geoms", [region_px]):
        rings = [part.exterior, *part.interiors]
        points = [np.array(ring.coords).round().astype(np.int32) for ring in rings]
        layer = np.zeros(shape, np.uint8)
        cv2.fillPoly(layer, points, 255)
        mask |= layer
    return mask
