"""What an encoder has to beat: a colour histogram, binary patterns of the stains, a bag of SIFT."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from shapely import affinity
from shapely.geometry.base import BaseGeometry

from ml.evaluation.retrieval.manifest import RoiRecord
from ml.imaging.slides import open_slide
from ml.roi.geometry import checked_region
from ml.roi.measures.texture import lbp_histogram
from ml.roi.stain import deconvolve, fixed_stains
from ml.types import ArrayF32, ImageU8

_MAX_SIDE_PX = 1024
"""Of a region's longer side: a baseline need not read more."""
_HSV_BINS = (8, 8, 8)
"""Coarse enough that a region of some thousand pixels fills them."""
_SIFT_POINTS = 800
"""Of a region: some for each of the vocabulary's words."""
_WORDS = 128
"""Of the vocabulary: as many as a SIFT descriptor has values."""
_VOCABULARY_SAMPLE = 30_000
"""Descriptors that the vocabulary is learnt from: over 200 for each word."""


def region_pixels(record: RoiRecord) -> tuple[ImageU8, ImageU8]:
    """A region, its longer side at most 1024 px: (H, W, 3) RGB and its (H, W) mask, 0 or 255."""
    with open_slide(record.image) as slide:
        size = {"width_px": slide.info.width_px, "height_px": slide.info.height_px}
        region = checked_region(record.geometry, **size)
        left, top, right, bottom = region.bounds
        downsample = max(1.0, max(right - left, bottom - top) / _MAX_SIDE_PX)
        pixels = slide.read_scaled((left, top), (right - left, bottom - top), downsample)
    moved = affinity.translate(region, -left, -top)
    return pixels, region_mask(
        affinity.scale(moved, 1 / downsample, 1 / downsample, origin=(0, 0)), pixels.shape[:2]
    )


def hsv_histogram(pixels: ImageU8, mask: ImageU8) -> ArrayF32:
    """(512,) square root of the joint HSV histogram of 8 x 8 x 8 bins."""
    hsv = cv2.cvtColor(pixels, cv2.COLOR_RGB2HSV)
    counts = cv2.calcHist([hsv], [0, 1, 2], mask, _HSV_BINS, [0, 180, 0, 256, 0, 256]).ravel()
    return np.asarray(np.sqrt(counts / max(counts.sum(), 1.0)), np.float32)


def stain_patterns(pixels: ImageU8, mask: ImageU8) -> ArrayF32:
    """(60,) rotation-invariant local binary patterns of haematoxylin and of eosin, three scales.

    Args:
        mask: what lies outside is blanked to the region's own median colour: no pattern of its own.
    """
    inside = pixels[mask > 0] if (mask > 0).any() else pixels.reshape(-1, 3)
    filled = pixels.copy()
    filled[mask == 0] = np.median(inside, axis=0).astype(np.uint8)
    stained = deconvolve(filled, fixed_stains(inside))
    channels = [np.ascontiguousarray(stained[..., i]) for i in (0, 1)]
    return np.concatenate([lbp_histogram(channel) for channel in channels]).astype(np.float32)


def sift_descriptors(pixels: ImageU8, mask: ImageU8) -> ArrayF32:
    """(N, 128) SIFT descriptors of a region, N possibly 0."""
    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    _, descriptors = cv2.SIFT_create(_SIFT_POINTS).detectAndCompute(grey, mask)  # type: ignore[attr-defined]
    return np.zeros((0, 128), np.float32) if descriptors is None else descriptors


def root_sift(pixels: ImageU8, mask: ImageU8, *, contrast: float, most: int = 0) -> ArrayF32:
    """(N, 128) square roots of SIFT descriptors of unit sum, N possibly 0, of grey values.

    Args:
        contrast: least of a key point. most: key points, 0 for all.
    Source: Arandjelovic and Zisserman 2012.
    """
    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    sift = cv2.SIFT_create(nfeatures=most, contrastThreshold=contrast)  # type: ignore[attr-defined]
    _, found = sift.detectAndCompute(grey, mask)
    if found is None:
        return np.zeros((0, 128), np.float32)
    return np.sqrt(found / np.maximum(found.sum(axis=1, keepdims=True), 1.0)).astype(np.float32)


def bags_of_words(descriptors: Sequence[ArrayF32], *, seed: int) -> ArrayF32:
    """(R, 128) square roots of visual-word histograms; the words are k-means of the same regions.

    Args:
        descriptors: R arrays (N_i, 128).
    """
    words = visual_words(np.concatenate(list(descriptors)), count=_WORDS, seed=seed)
    return np.stack([bag_of_words(found, words) for found in descriptors])


def visual_words(descriptors: ArrayF32, *, count: int, seed: int) -> ArrayF32:
    """(count, D) centres by k-means of a sample of descriptors (N, D); N where there are fewer."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(descriptors))[:_VOCABULARY_SAMPLE]
    sample = descriptors[order].astype(np.float32)
    cv2.setRNGSeed(seed)
    stop = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, 30, 1e-4)
    count = min(count, len(sample))
    _, _, centres = cv2.kmeans(sample, count, None, stop, 1, cv2.KMEANS_PP_CENTERS)  # type: ignore[call-overload]
    return np.asarray(centres, np.float32)


def bag_of_words(descriptors: ArrayF32, words: ArrayF32) -> ArrayF32:
    """(W,) square root of the share of each word (W, D) among descriptors (N, D), N possibly 0."""
    bag = np.zeros(len(words), np.float32)
    if len(descriptors):
        distance = (words**2).sum(axis=1) - 2 * descriptors @ words.T
        counts = np.bincount(distance.argmin(axis=1), minlength=len(words))
        bag[:] = np.sqrt(counts / counts.sum())
    return bag


def region_mask(region_px: BaseGeometry, shape: tuple[int, ...]) -> ImageU8:
    """(H, W) uint8, 255 inside a polygon in pixels, holes left out."""
    mask = np.zeros(shape, np.uint8)
    for part in getattr(region_px, "geoms", [region_px]):
        rings = [part.exterior, *part.interiors]
        points = [np.array(ring.coords).round().astype(np.int32) for ring in rings]
        layer = np.zeros(shape, np.uint8)
        cv2.fillPoly(layer, points, 255)
        mask |= layer
    return mask
