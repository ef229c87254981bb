"""Sets of large regions whose arrangement matters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ml.errors import BadInputError
from ml.evaluation.retrieval.suite.arrangement import (
    HALF,
    OCCLUDED,
    LargeRegion,
    collages_of,
    part_set,
    slide_set,
)
from ml.evaluation.retrieval.suite.config import SetConfig, read_suite
from ml.training.roi.patches.blocks import Block
from ml.types import no_progress

CONFIG = SetConfig(name="s", kind="slides", path=".", rearranged=2)


def noise(seed: int, side: int = 400):
    return np.random.default_rng(seed).integers(0, 255, (side, side, 3), dtype=np.uint8)


@pytest.fixture
def parts():
    large_regions = [LargeRegion(f"w{n}", "P", f"g{n}", lambda n=n: noise(n)) for n in range(4)]
    return part_set(CONFIG, large_regions)


def test_only_the_region_itself_is_relevant_among_regions_and_rearranged_copies(parts):
    assert [task.name for task in parts.tasks] == [HALF, OCCLUDED]
    assert len(parts.gallery) == 4 * (1 + 2)
    for task in parts.tasks:
        for number, query in enumerate(task.queries):
            (answer,) = query.gallery[query.relevant].tolist()
            assert parts.items[answer].key == f"w{number} whole"
            assert query.item not in query.gallery.tolist()


def test_a_rearranged_copy_has_the_tissue_of_its_region(parts):
    region, copy = (parts.items[i].read().pixels for i in parts.gallery[:2])
    assert (region != copy).any()
    assert np.array_equal(np.sort(region, axis=None), np.sort(copy, axis=None))
    assert np.array_equal(copy, parts.items[parts.gallery[1]].read().pixels)


def test_queries_are_half_of_a_region_or_two_thirds_of_a_window(parts):
    half, occluded = (parts.items[task.queries[0].item].read() for task in parts.tasks)
    assert half.pixels.shape == (400, 200, 3)
    height, width = occluded.pixels.shape[:2]
    assert height < 400 and width < 400
    assert occluded.polygon.area == pytest.approx(height * width * 2 / 3, rel=0.05)


def test_collages_of_a_patient_have_the_same_pieces():
    cells = np.zeros((0, 2), np.int64)
    blocks = {
        name: [Block((noise(seed, 508),), 0.5, cells) for seed in range(count)]
        for name, count in (("A", 16), ("B", 2))
    }
    collages = collages_of(CONFIG, blocks)
    large_regions = [
        collages.items[i] for i in collages.gallery if collages.items[i].key.endswith("whole")
    ]
    assert {item.patient for item in large_regions} == {"s/A"}  # B has too few pieces
    sums = [int(item.read().pixels.astype(np.int64).sum()) for item in large_regions]
    assert len(large_regions) == 2 and len(set(sums)) == 1


def test_cells_of_slides_are_on_tissue_and_do_not_overlap(tmp_path):
    image = np.full((600, 900, 3), 245, np.uint8)
    image[:, :610] = (120, 60, 140)
    Image.fromarray(image).save(tmp_path / "a.png")
    config = SetConfig(name="s", kind="slides", path=".", patients={"a.png": "A"}, cell_um=150.0)
    suite_set = slide_set(config, tmp_path, no_progress)  # 0.5 um per pixel: two rows of two cells
    assert len(suite_set.gallery) == 4
    with pytest.raises(BadInputError, match="slide"):
        slide_set(SetConfig(name="s", path=".", patients={"b.png": "B"}), tmp_path, no_progress)


def test_the_shipped_suite_is_complete():
    config = read_suite(Path("arrangement.toml"))
    assert [entry.kind for entry in config.sets] == ["collages", "slides", "sections", "sections"]
    assert all(entry.rearranged for entry in config.sets)
