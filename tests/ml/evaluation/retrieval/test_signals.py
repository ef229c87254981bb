"""Signals without labels, on an encoder whose answers are known."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from PIL import Image
from shapely.geometry import box

from ml.errors import BadInputError, EmptyRegionError
from ml.evaluation.retrieval.invariance import CHANGES, augmentation_invariance
from ml.evaluation.retrieval.manifest import RoiRecord
from ml.evaluation.retrieval.regions import region_image
from ml.evaluation.retrieval.section_alignment import align_masks, tissue_mask
from ml.evaluation.retrieval.sections import adjacent_sections, section_pairs
from ml.evaluation.retrieval.stain_shift import stain_shift_scores, stain_shifted
from ml.types import ArrayF32


class MeanGrey:
    """The vector is the mean brightness: changed by a stain shift, not by a flip or a turn."""

    def embed(self, image, polygon=None, mpp=None) -> ArrayF32:
        left, top, right, bottom = (
            (0, 0, image.shape[1], image.shape[0])
            if polygon is None
            else (round(v) for v in polygon.bounds)
        )
        return np.array([image[top:bottom, left:right].mean()], np.float32)


@pytest.fixture
def records(tmp_path):
    out = []
    for patient in range(3):
        for label, shade in (("dark", 90), ("light", 200)):
            image = np.zeros((64, 80, 3), np.uint8)
            image[...] = shade + 3 * patient
            image[20:40, 10:40] = (120, 60, 140 + 10 * patient)
            path = tmp_path / f"{patient}{label}.png"
            Image.fromarray(image).save(path)
            out.append(RoiRecord(path, f"P{patient}", label, None, None))
    return out


def test_no_strength_gives_the_image_back_and_some_does_not():
    image = np.random.default_rng(0).integers(0, 240, (20, 20, 3)).astype(np.uint8)
    same = stain_shifted(image, np.random.default_rng(0), strength=0)
    assert np.abs(same.astype(int) - image).max() <= 1
    shifted = stain_shifted(image, np.random.default_rng(0))
    assert np.abs(shifted.astype(int) - image).mean() > 3
    assert (shifted == stain_shifted(image, np.random.default_rng(0))).all()


def test_a_region_is_read_with_its_margin_and_its_polygon_moved(tmp_path):
    image = np.full((900, 1000, 3), 230, np.uint8)
    image[400:500, 500:700] = (120, 60, 140)
    Image.fromarray(image).save(tmp_path / "x.png")
    found = region_image(RoiRecord(tmp_path / "x.png", "P", "x", 0.5, box(500, 400, 700, 500)))
    left, top, right, bottom = (round(v) for v in found.polygon.bounds)
    assert found.pixels.shape[:2] == (100 + 512, 200 + 512) and found.mpp == 0.5
    assert (found.pixels[top:bottom, left:right] == (120, 60, 140)).all()


def test_a_stain_shift_lowers_what_looks_at_colour_only(records):
    scores = stain_shift_scores(MeanGrey(), records, draws=4, strength=3.0)
    assert scores["map_clean"] == pytest.approx(1)
    assert scores["map_shifted"] < 1 and scores["drop_percent"] > 0
    assert len(scores["draws"]) == 4
    none = stain_shift_scores(MeanGrey(), records, draws=1, strength=0.0)
    assert abs(none["drop_percent"]) < 1e-9 and none["p_at_1_self"] == 1


def test_flips_and_turns_leave_a_mean_as_it_is(records):
    found = augmentation_invariance(MeanGrey(), records)
    assert set(found) == set(CHANGES)
    for name in ("flip", "turn"):
        assert found[name]["recall_at_1"] == 1
        assert found[name]["distance_ratio"] == pytest.approx(0, abs=1e-3)
    assert found["stain"]["distance_ratio"] > found["flip"]["distance_ratio"]


def test_changes_move_the_polygon_with_the_pixels(tmp_path):
    image = np.full((300, 400, 3), 230, np.uint8)
    image[100:150, 200:280] = 60
    Image.fromarray(image).save(tmp_path / "x.png")
    record = RoiRecord(tmp_path / "x.png", "P", "x", None, box(200, 100, 280, 150))
    for name in ("flip", "turn"):
        new = CHANGES[name](region_image(record), np.random.default_rng(0))
        left, top, right, bottom = (round(v) for v in new.polygon.bounds)
        assert (new.pixels[top:bottom, left:right] == 60).all(), name
        assert (new.pixels == 60).all(axis=2).sum() == 80 * 50


def test_one_region_is_not_enough(records):
    with pytest.raises(BadInputError, match="expected two regions or more"):
        augmentation_invariance(MeanGrey(), records[:1])


def section(path, shift, turn):
    """A wedge of tissue whose darkness grows along it, so that every place has its own grey."""
    y, x = np.mgrid[0:900, 0:900]
    cosine, sine = np.cos(turn), np.sin(turn)
    u = cosine * (x - 450 - shift) + sine * (y - 450)
    v = -sine * (x - 450 - shift) + cosine * (y - 450)
    inside = (np.abs(u) < 300) & (np.abs(v) < 120 + u / 4)
    image = np.full((900, 900, 3), 240, np.uint8)
    image[inside] = np.stack([70 + u / 6, 40 + u / 10, 110 + v / 8], axis=-1)[inside]
    Image.fromarray(image).save(path)
    return path


class MeanColour(MeanGrey):
    def embed(self, image, polygon=None, mpp=None):
        return image.reshape(-1, 3).mean(axis=0).astype(np.float32)


def test_the_same_place_is_found_in_the_next_section(tmp_path):
    pair = (section(tmp_path / "a.png", 0, 0.0), section(tmp_path / "b.png", 40, 0.4))
    found = adjacent_sections(MeanColour(), [pair], cell_um=70.0, mpp=1.0)
    assert found["pairs"][0]["overlap"] > 0.9 and found["pairs"][0]["cells"] >= 15
    assert found["recall_at_1"] > 0.8 > 2 * found["chance_at_1"]
    assert section_pairs(tmp_path) == [pair]


def test_an_encoder_that_sees_nothing_is_at_chance(tmp_path):
    class Noise(MeanGrey):
        rng = np.random.default_rng(0)

        def embed(self, image, polygon=None, mpp=None):
            return self.rng.random(3).astype(np.float32)

    pair = (section(tmp_path / "a.png", 0, 0.0), section(tmp_path / "b.png", 0, 0.0))
    found = adjacent_sections(Noise(), [pair], cell_um=40.0, mpp=1.0)
    assert found["recall_at_1"] == pytest.approx(found["chance_at_1"], abs=0.15)


def test_outlines_are_aligned_whatever_the_turn():
    mask = np.zeros((300, 300), np.uint8)
    cv2.fillPoly(mask, [np.array([[60, 60], [220, 80], [120, 230]], np.int32)], 255)
    true = cv2.getRotationMatrix2D((150, 150), 130, 1.0)
    found, overlap = align_masks(mask, np.asarray(cv2.warpAffine(mask, true, (300, 300))))
    corner = np.array([60, 60, 1.0])
    assert overlap > 0.93 and np.abs(found @ corner - true @ corner).max() < 8


def test_sections_that_do_not_belong_together_are_refused(tmp_path):
    image = np.full((900, 900, 3), 240, np.uint8)
    image[440:460, 50:850] = 60
    Image.fromarray(image).save(tmp_path / "line.png")
    with pytest.raises(BadInputError, match="not adjacent sections"):
        adjacent_sections(
            MeanColour(), [(tmp_path / "line.png", section(tmp_path / "a.png", 0, 0))], mpp=1.0
        )
    with pytest.raises(BadInputError, match="two sections or more"):
        adjacent_sections(MeanColour(), [])


def test_a_blank_section_has_no_tissue():
    with pytest.raises(EmptyRegionError, match="no tissue on the section"):
        tissue_mask(np.full((50, 50, 3), 255, np.uint8))
