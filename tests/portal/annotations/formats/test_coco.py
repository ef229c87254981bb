"""COCO documents, sound and hostile: each shape is read or refused with its reason."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import shapely

from portal.annotations.documents import DocumentError
from portal.annotations.formats.coco import runs_unpacked
from portal.annotations.qupath import Feature, FeatureError, Problem, feature_read
from tests.portal.annotations.formats.reading import area, read


def coco(*annotations: Any, images: Any = None) -> str:
    return json.dumps(
        {
            "images": images
            or [{"id": 1, "file_name": "section 1.png", "width": 1000, "height": 800}],
            "annotations": [
                {"id": n, "image_id": 1, "category_id": 1, **item}
                for n, item in enumerate(annotations)
            ],
            "categories": [{"id": 1, "name": "Gland"}],
        }
    )


def test_coco_polygons_masks_and_boxes_are_read() -> None:
    # Columns of 4 pixels: 2..4 of the first and 0..2 of the second are inside.
    mask = {"size": [4, 5], "counts": [2, 4, 14]}
    features = read(
        coco(
            {"segmentation": [[10, 10, 30, 10, 30, 30, 10, 30]], "score": 0.5},
            {"segmentation": [[0, 0, 9, 0, 9, 9], [20, 20, 29, 20, 29, 29]]},
            {"segmentation": mask, "iscrowd": 1},
            {"segmentation": mask | {"counts": "24>"}, "iscrowd": 1},
            {"segmentation": [], "bbox": [5, 5, 10, 20]},
        )
    )
    assert [feature.label for feature in features] == ["Gland"] * 5
    assert [area(feature) for feature in features] == [400.0, 81.0, 4.0, 4.0, 200.0]
    truth = shapely.union_all([shapely.box(0, 2, 1, 4), shapely.box(1, 0, 2, 2)])
    assert shapely.geometry.shape(features[2].geometry).equals(truth)
    assert shapely.geometry.shape(features[3].geometry).equals(truth)
    assert features[0].foreign["measurements"] == {"score": 0.5}
    assert features[4].notes == ("it has only a box",)


def _packed(runs: list[int]) -> str:
    """COCO's run-length text, encoded independently from its specification."""
    text = ""
    for place, run in enumerate(runs):
        value = run - runs[place - 2] if place > 2 else run
        while True:
            bits, value = value & 31, value >> 5
            is_last = value == (-1 if bits & 16 else 0)
            text += chr(48 + (bits if is_last else bits | 32))
            if is_last:
                break
    return text


def test_compressed_runs_are_unpacked() -> None:
    rng = np.random.default_rng(1)
    for max_run in (3, 40, 5_000, 2**30):
        runs = rng.integers(0, max_run, 60).tolist()
        assert runs_unpacked(_packed(runs)).tolist() == runs


def test_a_mask_of_an_enormous_image_needs_little_memory() -> None:
    mask = {"size": [2**30, 2**30], "counts": [5, 10]}
    (result,) = read(coco({"segmentation": mask}))
    assert area(result) == 10.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"image_id": 9},
        {"image_id": [1]},
        {"category_id": 9},
        {"category_id": {"a": 1}},
        {"segmentation": [[1, 2, 3]]},
        {"segmentation": [["a", 2, 3, 4, 5, 6]]},
        {"segmentation": "text"},
        {"segmentation": {"size": [4], "counts": [1]}},
        {"segmentation": {"size": [4, 5], "counts": [1, 99]}},
        {"segmentation": {"size": [4, 5], "counts": [-1, 9]}},
        {"segmentation": {"size": [4, 5], "counts": [2**70]}},
        {"segmentation": {"size": [4, 5], "counts": "\u2603"}},
        {"segmentation": {"size": [4, 5], "counts": "ooooooooooooooooooo"}},
        {"segmentation": {"size": [4, 5], "counts": "o"}},
        {"segmentation": {"size": [4, 5], "counts": [20]}},
        {"segmentation": {"size": [1, 500_000], "counts": [1] * 250_000}},
        {"bbox": [1, 2, "x", 4]},
        {},
    ],
)
def test_coco_annotations_that_are_broken_are_refused_one_by_one(wrong: dict[str, Any]) -> None:
    sound = {"segmentation": [[10, 10, 30, 10, 30, 30]]}
    first, second = read(coco(wrong, sound))
    with pytest.raises(FeatureError):
        feature_read(first)
    assert area(second) == 200.0


def test_coco_not_finite_numbers_are_refused_by_the_outline_check() -> None:
    text = coco({"segmentation": [[1, 1, 9, 1, 9, 9]]}).replace("9]]", "NaN]]")
    (result,) = read(text)
    with pytest.raises((FeatureError, Exception), match="not a"):
        area(feature_read(result))


def test_the_image_with_the_name_and_size_of_the_canvas_is_read() -> None:
    images = [
        {"id": 1, "file_name": "other.png", "width": 1000, "height": 800},
        {"id": 2, "file_name": "dir/SECTION 1.tif", "width": 1000, "height": 800},
        {"id": 3, "file_name": "section 1.png", "width": 10, "height": 8},
    ]
    ring = {"segmentation": [[10, 10, 30, 10, 30, 30]]}
    features = read(coco(*[ring | {"image_id": n} for n in (1, 2, 3)], images=images))
    assert [type(feature) for feature in features] == [Problem, Feature, Problem]
    assert features[2].reason == "it belongs to another image: section 1.png, 10 x 8 pixels"


@pytest.mark.parametrize(
    "text",
    [
        '{"images": [], "categories": []}',
        '{"images": [{}], "annotations": []}',
        '{"images": [[]], "annotations": []}',
        '{"annotations": [' + "[" * 10_000,
        '{"annotations": [1',
        '{"categories": [{"id": {"a": 1}}], "annotations": []}',
    ],
)
def test_unreadable_coco_documents_are_refused_completely(text: str) -> None:
    with pytest.raises(DocumentError):
        read(text)
