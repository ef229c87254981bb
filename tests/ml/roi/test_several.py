"""Several regions at once: the same vectors as one by one, and each with an error of its own."""

from __future__ import annotations

from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from shapely.geometry import Polygon, box

from ml.errors import CancelledError, EmptyRegionError, InvalidGeometryError
from ml.imaging.slides import open_slide
from ml.imaging.slides.ahead import SlideReaders
from ml.roi import load_encoder
from ml.roi.several import SampledRegion, batches_by_patches, in_turn


@pytest.fixture(scope="module")
def slide(tissue, tmp_path_factory):
    image = tissue(700, 1800)
    image[:, 1000:] = 255  # blank glass
    path = tmp_path_factory.mktemp("several") / "still.png"
    Image.fromarray(image).save(path)
    with open_slide(path) as found:
        yield found


@pytest.mark.parametrize("name", ["default", "endoscopy"])
def test_several_regions_give_the_vectors_of_each(slide, name):
    encoder = load_encoder(name)
    regions = [box(20, 20, 420, 380), box(300, 200, 900, 690), box(500, 30, 640, 160)]
    together = encoder.embed_regions(slide, regions, 0.5)
    for region, found in zip(regions, together, strict=True):
        alone = encoder.embed_region(slide, region, 0.5)
        assert np.array_equal(found.vector, alone.vector)
        assert np.array_equal(found.patch_boxes_l0, alone.patch_boxes_l0)


def test_a_region_that_cannot_be_embedded_stands_among_the_others(slide):
    encoder = load_encoder("default")
    regions = [box(1400, 100, 1790, 600), box(20, 20, 420, 380), Polygon()]
    blank, good, nothing = encoder.embed_regions(slide, regions, 0.5)
    assert isinstance(blank, EmptyRegionError) and "no tissue" in str(blank)
    assert good.vector.shape == (encoder.dim,)
    assert isinstance(nothing, InvalidGeometryError)
    assert encoder.embed_regions(slide, [], 0.5) == []


def test_progress_may_stop_it(slide):
    def stop(done, total, phase):
        raise CancelledError("stop")

    with pytest.raises(CancelledError):
        load_encoder("default").embed_regions(slide, [box(20, 20, 420, 380)], 0.5, stop)


def test_batches_hold_at_most_so_many_patches_and_a_larger_region_alone():
    assert list(batches_by_patches([200, 200, 200, 900, 1])) == [[0, 1], [2], [3], [4]]
    assert list(batches_by_patches([])) == []


def test_readers_change_no_bit_of_a_vector(slide, monkeypatch):
    """With the processor in the device's place; parts are read ahead, one while one is embedded."""
    encoder = load_encoder("default")
    regions = [box(20, 20, 420, 380), box(300, 200, 900, 690), box(1400, 100, 1790, 600)]
    expected = encoder.embed_regions(slide, regions, 0.5)
    begun = []
    readers = SlideReaders(2)
    monkeypatch.setattr("ml.roi.several.slide_readers", lambda count: readers)
    monkeypatch.setattr("ml.roi.several.BATCH", 8)  # a region a batch
    real = readers.begin
    monkeypatch.setattr(
        readers, "begin", lambda *args, **given: begun.append(args) or real(*args, **given)
    )
    monkeypatch.setenv("TESSERA_READERS", "2")
    found = encoder.embed_regions(slide, regions, 0.5)
    readers.close()
    assert len(begun) == 3
    for a, b in zip(expected[:2], found[:2], strict=True):
        assert np.array_equal(a.vector, b.vector)
    assert str(found[2]) == str(expected[2]) and isinstance(found[2], EmptyRegionError)


def test_the_next_batch_is_begun_while_one_is_worked_on_and_no_more(monkeypatch):
    monkeypatch.setattr("ml.roi.several.BATCH", 8)
    sample = SimpleNamespace(centre_px=np.zeros((4, 2)))
    regions = [SampledRegion((0, at), None, sample, None) for at in range(5)]
    begun, seen = [], []
    with closing(in_turn(regions, lambda one: begun.append(one.place[1]))) as turns:
        for number, (batch, sources) in enumerate(turns):
            seen.append([one.place[1] for one in batch])
            assert len(sources) == len(batch)
            assert begun == [[0, 1, 2, 3], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]][number]
    assert seen == [[0, 1], [2, 3], [4]]
