"""Patches of slides: pixels, tile reads and memory."""

from __future__ import annotations

import threading
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from shapely.geometry import box

from ml.errors import CorruptFileError
from ml.imaging.slides.grid import StoredLevel
from ml.imaging.slides.slide import SlideImage
from ml.imaging.slides.tile_cache import cached_slide
from ml.roi import load_encoder
from ml.roi.patches import ImagePatches, SlidePatches, patch_corners
from ml.roi.sampling import SamplingConfig, sample_patches

TILE = 256


class LazyReader:
    """A synthetic slide of any size, computed from coordinates; counts its reads."""

    vendor = "lazy"
    display_range = None
    icc_profile = None
    mpp = (0.5, 0.5)

    def __init__(self, width, height, *, fail_at=None):
        self.properties = {}
        self.stored = tuple(StoredLevel(width // d, height // d, float(d)) for d in (1, 16))
        self.reads = Counter()
        self.fail_at = fail_at
        self.lock = threading.Lock()

    def read(self, level, x, y, width, height):
        with self.lock:
            self.reads[level, x, y, width, height] += 1
        if self.fail_at == (x, y):
            raise CorruptFileError("tile cut")
        out = np.full((height, width, 3), 255, np.uint8)
        stored = self.stored[level]
        columns = np.arange(x, min(x + width, stored.width_px))
        rows = np.arange(y, min(y + height, stored.height_px))
        wave = np.sin(columns / 9)[None, :] + np.sin(rows / 7)[:, None]
        grey = np.asarray(150 + 30 * wave, np.uint8)
        out[: rows.size, : columns.size] = np.stack([grey, grey - 60, grey - 20], axis=-1)
        return out

    def close(self):
        pass


def source(reader, corners, *, downsample=2.0):
    return SlidePatches(SlideImage(reader), downsample=downsample, corners_px=corners, patch_px=224)


def corners_of(width, height, **settings):
    config = SamplingConfig(**settings)
    sample = sample_patches(
        box(0, 0, width, height), downsample=2.0, width_l0=width, height_l0=height, config=config
    )
    return patch_corners(sample.centre_px, 224)


@pytest.mark.slow
@pytest.mark.parametrize("side", [700, 3_000, 9_000, 30_000])
def test_every_tile_is_decoded_a_single_time_and_completely(side):
    reader = LazyReader(side, side)
    corners = corners_of(side, side)
    patches = source(reader, corners)
    reader.reads.clear()  # levels are compared when a slide is opened
    for corner in [*corners[::5], *corners]:
        assert patches.read(corner, 224).shape == (224, 224, 3)
    assert max(reader.reads.values()) == 1
    for level, x, y, width, height in reader.reads:
        assert (level, x % TILE, y % TILE, width, height) == (0, 0, 0, TILE, TILE)


@pytest.mark.slow
def test_only_tiles_under_patches_are_read():
    reader = LazyReader(30_000, 30_000)
    corners = corners_of(30_000, 30_000)
    source(reader, corners).read(corners[0], 224)
    assert len(reader.reads) < 0.7 * (30_000 / TILE) ** 2


def test_sparse_and_dense_reading_give_the_same_pixels(monkeypatch):
    corners = corners_of(2_500, 1_900)
    dense = source(LazyReader(2_500, 1_900), corners)
    monkeypatch.setattr("ml.imaging.slides.patches.ONE_READ_PX", 0)
    sparse = source(LazyReader(2_500, 1_900), corners)
    for corner in corners[::4]:
        difference = dense.read(corner, 224).astype(int) - sparse.read(corner, 224)
        assert np.abs(difference).max() <= 1


def test_a_slide_and_its_image_give_equal_pixels():
    reader = LazyReader(1_500, 1_200)
    image = reader.read(0, 0, 0, 1_500, 1_200)
    corners = corners_of(1_500, 1_200)
    from_image, slide = (
        ImagePatches(image, downsample=2.0),
        source(LazyReader(1_500, 1_200), corners),
    )
    for corner in corners:
        difference = from_image.read(corner, 224).astype(int) - slide.read(corner, 224)
        assert np.abs(difference).max() <= 1


def test_an_unannounced_corner_is_read():
    corners = corners_of(30_000, 30_000)
    patches = source(LazyReader(30_000, 30_000), corners)
    assert patches.read((5_000, 5_003), 224).shape == (224, 224, 3)
    assert patches.read(corners[0], 112).shape == (112, 112, 3)


def test_more_patches_than_a_batch_are_read_in_batches(monkeypatch):
    monkeypatch.setattr("ml.imaging.slides.patches.BATCH", 16)
    reader = LazyReader(30_000, 30_000)
    corners = corners_of(30_000, 30_000, max_vertices=64)
    patches = source(reader, corners)
    patches.read(corners[0], 224)
    first = sum(reader.reads.values())
    for corner in corners:
        patches.read(corner, 224)
    assert first < 0.4 * sum(reader.reads.values())


def test_a_damaged_tile_raises_an_error_in_every_thread():
    slide = cached_slide(SlideImage(LazyReader(2_000, 2_000, fail_at=(256, 256))))
    for _ in range(2):
        with pytest.raises(CorruptFileError, match="tile cut"):
            slide.read_level(0, (200, 200), (300, 300))
    assert slide.read_level(0, (600, 600), (50, 50)).shape == (50, 50, 3)


def test_the_cache_evicts_the_oldest_tiles():
    reader = LazyReader(5_000, 256)
    slide = cached_slide(SlideImage(reader), cache_bytes=3 * TILE * TILE * 3)
    for x in (0, 256, 512, 768, 0):
        slide.read_level(0, (x, 0), (TILE, TILE))
    assert reader.reads[0, 0, 0, TILE, TILE] == 2 and reader.reads[0, 768, 0, TILE, TILE] == 1


@pytest.mark.slow
def test_memory_does_not_grow_with_the_region():
    peaks = []
    for side in (12_000, 100_000):
        reader = LazyReader(side, side)
        corners = corners_of(side, side)
        patches = source(reader, corners)
        tracemalloc.start()
        for corner in corners:
            patches.read(corner, 224)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0] < 400e6


@pytest.mark.slow
def test_a_region_of_ten_billion_pixels_is_embedded_with_a_low_density():
    encoder = load_encoder("default")
    with SlideImage(LazyReader(100_000, 100_000)) as slide:
        embedding = encoder.embed_region(slide, box(0, 0, 100_000, 100_000))
        assert embedding.n_patches <= encoder.config.sampling.max_vertices
        assert embedding.density < 0.01 and np.isfinite(embedding.vector).all()
