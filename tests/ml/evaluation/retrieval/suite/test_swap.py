"""The stain swap: other colours, the same structure; donors of other patients, drawn by name."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from ml.errors import BadInputError
from ml.evaluation.retrieval.regions import RegionImage
from ml.evaluation.retrieval.suite.sets import Item
from ml.evaluation.retrieval.suite.swap import (
    Stained,
    drawn_donors,
    measure_stains,
    montage,
    od_map,
    recolourings,
    restained,
)
from ml.roi.stain.deconvolution import RUIFROK_HE, StainEstimate, optical_density
from tests.ml.evaluation.retrieval.suite.conftest import stained_dots

OWN = RUIFROK_HE / np.linalg.norm(RUIFROK_HE, axis=1, keepdims=True)
OTHER = np.array([[0.5, 0.8, 0.33], [0.2, 0.93, 0.31]])
OTHER = OTHER / np.linalg.norm(OTHER, axis=1, keepdims=True)


def stains(matrix=OWN, scale=(1.0, 0.5), white=(245.0, 245.0, 245.0)):
    return StainEstimate(matrix, np.array(scale), 1.0, "nuclei", white=white)


def unit(name, patient=None, **kwargs):
    return Stained(name, patient or name, stains(**kwargs))


def changed(image, unit, donor):
    return restained(image, recolourings([unit], {unit.name: donor})[unit.name])


def test_pure_haematoxylin_has_the_donor_s_vector_and_strength():
    matrix = od_map(stains(scale=(1.0, 0.5)), stains(matrix=OTHER, scale=(2.0, 0.5)))
    assert OWN[0] @ matrix == pytest.approx(2 * OTHER[0], abs=1e-9)
    assert OWN[1] @ matrix == pytest.approx(OTHER[1], abs=1e-9)


def test_swapping_to_the_same_stains_changes_only_rounding():
    image = stained_dots(5)
    a = unit("a")
    assert np.abs(changed(image, a, a).astype(int) - image.astype(int)).max() <= 1


def test_empty_glass_has_the_donor_s_colour():
    glass = np.full((4, 4, 3), 245, np.uint8)
    donor = unit("b", white=(250.0, 240.0, 230.0))
    assert changed(glass, unit("a"), donor)[0, 0].tolist() == [250, 240, 230]


def test_colours_change_and_structure_does_not():
    image = stained_dots(5)
    donor = unit("b", matrix=OTHER, scale=(0.7, 0.8), white=(250.0, 245.0, 240.0))
    other = changed(image, unit("a"), donor)
    assert np.abs(other.mean(axis=(0, 1)) - image.mean(axis=(0, 1))).max() > 8
    density = [optical_density(x).mean(axis=2).ravel() for x in (image, other)]
    assert np.corrcoef(*density)[0, 1] > 0.98
    edges = [cv2.Laplacian(d.reshape(image.shape[:2]), cv2.CV_32F).ravel() for d in density]
    assert np.corrcoef(*edges)[0, 1] > 0.95


def test_recolouring_back_restores_the_image():
    image = stained_dots(5)
    a, b = unit("a"), unit("b", matrix=OTHER, scale=(1.2, 0.6))
    assert np.abs(changed(changed(image, a, b), b, a).astype(int) - image.astype(int)).max() <= 4


def test_donors_are_of_other_patients_and_differ_between_draws():
    units = [unit(f"p{i}/{s}", f"p{i}") for i in range(6) for s in range(2)]
    drawn = [drawn_donors(units, units, draw=draw, seed=0) for draw in range(1, 6)]
    for donors in drawn:
        assert all(donors[u.name].patient != u.patient for u in units)
    assert len({tuple(d.name for d in donors.values()) for donors in drawn}) == 5
    again = drawn_donors(units, units, draw=1, seed=0)
    assert {k: v.name for k, v in again.items()} == {k: v.name for k, v in drawn[0].items()}
    # independently: the sections of one patient do not all get the same donor
    assert any(donors["p0/0"].name != donors["p0/1"].name for donors in drawn)


def test_donors_do_not_depend_on_other_batches():
    units = [unit(f"p{i}") for i in range(6)]
    assert (
        drawn_donors(units[:1], units, draw=1, seed=0)["p0"]
        is (drawn_donors(units, units, draw=1, seed=0)["p0"])
    )


def test_a_suite_of_one_patient_cannot_be_swapped():
    with pytest.raises(BadInputError, match="other patient"):
        drawn_donors([unit("p")], [unit("p"), unit("p/2", "p")], draw=1, seed=0)


def test_the_stains_of_a_patient_are_measured_on_all_of_its_images():
    images = [
        stained_dots(5, seed=i, strength=(s, 1.0)) for i, s in enumerate((0.8, 0.8, 1.6, 1.6))
    ]
    items = [
        Item(str(i), f"p{i // 2}", f"p{i // 2}", lambda i=i: RegionImage(images[i], None, None))
        for i in range(4)
    ]
    weak, strong = measure_stains(items, images)
    assert (weak.name, strong.name) == ("p0", "p1")
    assert strong.stains.scale[0] > 1.4 * weak.stains.scale[0]


def test_a_montage_contains_only_pixels_of_its_images():
    images = [np.full((h, 5, 3), h, np.uint8) for h in (4, 6)]
    assert montage(images).shape == (4, 10, 3)
    assert set(np.unique(montage(images)).tolist()) == {4, 6}


def test_recolourings_of_other_stains_have_other_bytes():
    a, b = unit("a"), unit("b", scale=(1.0, 0.6))
    c = replace(b, stains=stains(scale=(1.0, 0.7)))
    first, two = (recolourings([a], {"a": d})["a"].as_bytes() for d in (b, c))
    assert first != two
