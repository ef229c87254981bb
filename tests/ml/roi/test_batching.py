"""Embedding of several regions with shared batches."""

from __future__ import annotations

from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from shapely.geometry import Polygon, box

from ml.errors import CancelledError, EmptyRegionError, InvalidGeometryError
from ml.imaging.slides.prefetch import PrefetchPool
from ml.imaging.slides.slide import open_slide
from ml.roi import load_encoder
from ml.roi.batching import SampledRegion, batches_by_patches, prefetched_batches


@pytest.fixture(scope="module")
def slide(tissue, tmp_path_factory):
    image = tissue(700, 1800)
    image[:, 1000:] = 255  # blank glass
    path = tmp_path_factory.mktemp("several") / "still.png"
    Image.fromarray(image).save(path)
    with open_slide(path) as result:
        yield result


@pytest.mark.parametrize("name", ["default", "endoscopy"])
def test_several_regions_have_the_vectors_of_single_ones(slide, name):
    encoder = load_encoder(name)
    regions = [box(20, 20, 420, 380), box(300, 200, 900, 690), box(500, 30, 640, 160)]
    together = encoder.embed_regions(slide, regions, 0.5)
    for region, result in zip(regions, together, strict=True):
        alone = encoder.embed_region(slide, region, 0.5)
        assert np.array_equal(result.vector, alone.vector)
        assert np.array_equal(result.patch_boxes_l0, alone.patch_boxes_l0)


def test_the_error_of_a_region_is_returned_in_its_place(slide):
    encoder = load_encoder("default")
    regions = [box(1400, 100, 1790, 600), box(20, 20, 420, 380), Polygon()]
    blank, good, nothing = encoder.embed_regions(slide, regions, 0.5)
    assert isinstance(blank, EmptyRegionError) and "no tissue" in str(blank)
    assert good.vector.shape == (encoder.dim,)
    assert isinstance(nothing, InvalidGeometryError)
    assert encoder.embed_regions(slide, [], 0.5) == []


def test_progress_can_cancel(slide):
    def stop(done, total, phase):
        raise CancelledError("stop")

    with pytest.raises(CancelledError):
        load_encoder("default").embed_regions(slide, [box(20, 20, 420, 380)], 0.5, stop)


def test_batches_have_a_maximum_of_patches_unless_a_region_is_larger():
    assert list(batches_by_patches([200, 200, 200, 900, 1])) == [[0, 1], [2], [3], [4]]
    assert list(batches_by_patches([])) == []


@pytest.mark.slow
def test_prefetching_does_not_change_vectors(slide, monkeypatch):
    """The CPU simulates the device; one batch is prefetched while another is embedded."""
    encoder = load_encoder("default")
    regions = [box(20, 20, 420, 380), box(300, 200, 900, 690), box(1400, 100, 1790, 600)]
    expected = encoder.embed_regions(slide, regions, 0.5)
    started = []
    readers = PrefetchPool(2)
    monkeypatch.setattr("ml.roi.batching.prefetch_pool", lambda count: readers)
    monkeypatch.setattr("ml.roi.batching.BATCH", 8)  # one region per batch
    real = readers.start
    monkeypatch.setattr(readers, "start", lambda *args: started.append(args) or real(*args))
    monkeypatch.setenv("TESSERA_READERS", "2")
    embeddings = encoder.embed_regions(slide, regions, 0.5)
    readers.close()
    assert len(started) == 3
    for a, b in zip(expected[:2], embeddings[:2], strict=True):
        assert np.array_equal(a.vector, b.vector)
    assert str(embeddings[2]) == str(expected[2]) and isinstance(embeddings[2], EmptyRegionError)


def test_a_single_batch_is_prefetched(monkeypatch):
    monkeypatch.setattr("ml.roi.batching.BATCH", 8)
    sample = SimpleNamespace(centre_px=np.zeros((4, 2)))
    regions = [SampledRegion((0, at), None, sample, None) for at in range(5)]
    started, batches = [], []
    with closing(prefetched_batches(regions, lambda item: started.append(item.place[1]))) as turns:
        for number, (batch, sources) in enumerate(turns):
            batches.append([item.place[1] for item in batch])
            assert len(sources) == len(batch)
            assert started == [[0, 1, 2, 3], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]][number]
    assert batches == [[0, 1], [2, 3], [4]]
