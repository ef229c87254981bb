"""Stain estimation and normalisation of slides."""

from __future__ import annotations

import json

import cv2
import numpy as np
import pytest
from PIL import Image

from ml.errors import BadInputError, ShapeError
from ml.imaging.samples.packaged import packaged_image
from ml.imaging.slides.slide import open_slide
from ml.roi.patches import ImagePatches
from ml.roi.stain.deconvolution import deconvolve
from ml.roi.stain.estimate import StainConfig, estimate_stain, estimate_stain_of_image
from ml.roi.stain.make_target import main
from ml.roi.stain.normalise import NormalisedPatches, normalise, normalise_exactly
from ml.roi.stain.storage import load_target, stain_from_dict, stain_to_dict

SCANNERS = {
    "purple": np.array([[0.73, 0.60, 0.32], [0.35, 0.83, 0.43]]),
    "red": np.array([[0.45, 0.79, 0.42], [0.18, 0.86, 0.48]]),
    "published": np.array([[0.650, 0.704, 0.286], [0.072, 0.990, 0.105]]),
}


def stained(matrix, *, strength=(1.0, 1.0), white=(245, 245, 245), side=512, seed=0):
    """Nuclei, stroma and glass with known stain vectors: (H, W, 3) uint8."""
    rng = np.random.default_rng(seed)
    nuclei = np.zeros((side, side), np.float32)
    for _ in range(side * side // 500):
        centre = rng.integers(0, side, 2).tolist()
        cv2.ellipse(nuclei, centre, (5, 4), rng.uniform(0, 180), 0, 360, rng.uniform(0.6, 1), -1)
    nuclei = cv2.GaussianBlur(nuclei, (0, 0), 0.8)
    stroma = cv2.GaussianBlur(rng.uniform(0, 1, (side, side)).astype(np.float32), (0, 0), 4)
    stroma = 0.2 + 0.5 * (stroma - stroma.min()) / np.ptp(stroma)
    concentration = np.stack([nuclei + 0.03, stroma * (1 - 0.7 * nuclei)], axis=-1) * strength
    concentration[:, : side // 6] = 0
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    rgb = (np.array(white) + 1) * 10.0 ** -(concentration @ unit) - 1
    return np.clip(rgb + rng.normal(0, 1.5, rgb.shape), 0, 255).round().astype(np.uint8)


def angles_deg(found, truth):
    unit = truth / np.linalg.norm(truth, axis=1, keepdims=True)
    return np.degrees(np.arccos(np.clip((found * unit).sum(axis=1), -1, 1)))


@pytest.mark.parametrize("scanner", SCANNERS)
def test_known_vectors_are_recovered(scanner):
    stain = estimate_stain_of_image(stained(SCANNERS[scanner]))
    assert stain.method == "nuclei" and stain.reason == ""
    assert angles_deg(stain.matrix, SCANNERS[scanner]).max() < 6


def test_tinted_glass_is_not_taken_for_stain():
    image = stained(SCANNERS["purple"], white=(228, 196, 220))
    stain = estimate_stain_of_image(image)
    assert np.abs(np.array(stain.white) - (228, 196, 220)).max() <= 3
    assert angles_deg(stain.matrix, SCANNERS["purple"]).max() < 6
    assert deconvolve(image, stain)[:, :60].mean() < 0.05


def test_macenko_can_be_requested():
    stain = estimate_stain_of_image(stained(SCANNERS["red"]), config=StainConfig(method="macenko"))
    assert stain.method == "macenko" and angles_deg(stain.matrix, SCANNERS["red"]).max() < 8


def test_macenko_is_the_fallback_for_few_nuclei():
    stain = estimate_stain_of_image(
        stained(SCANNERS["red"]), config=StainConfig(min_nucleus_px=10**9)
    )
    assert stain.method == "macenko" and "pixels in nuclei" in stain.reason


@pytest.mark.slow
def test_a_slide_and_its_pixels_give_the_same_estimate(tmp_path):
    image = stained(SCANNERS["red"], side=900)
    Image.fromarray(image).save(tmp_path / "slide.png")
    with open_slide(tmp_path / "slide.png") as slide:
        stain = estimate_stain(slide)
        assert np.array_equal(stain.matrix, estimate_stain(slide).matrix)
    assert np.array_equal(stain.matrix, estimate_stain_of_image(image).matrix)


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (np.full((600, 600, 3), 245, np.uint8), "blank"),
        (stained(SCANNERS["red"], strength=(1, 0)), "one stain only|not H&E"),
        (np.where(stained(SCANNERS["red"]) < 60, 200, 8).astype(np.uint8), "dark background"),
        (np.zeros((50, 50, 3), np.uint8), "dark background"),
        (stained(SCANNERS["red"], side=64)[:30, :30], "tissue pixels, 2000 needed"),
    ],
)
def test_slides_other_than_h_and_e_are_not_normalised_with_a_reason(image, reason):
    stain = estimate_stain_of_image(image)
    assert stain.method == "none"
    assert any(part in stain.reason for part in reason.split("|")), stain.reason
    assert normalise(image, stain, load_target()) is image
    assert np.isfinite(deconvolve(image, stain)).all()


def test_a_real_immunostain_is_not_normalised_with_a_reason():
    stain = estimate_stain_of_image(packaged_image("ihc.png"), mpp=0.5)
    assert stain.method == "none" and "immunostain" in stain.reason


def test_no_normalisation_can_be_requested():
    stain = estimate_stain_of_image(stained(SCANNERS["red"]), config=StainConfig(method="none"))
    assert (stain.method, stain.reason) == ("none", "asked for")


def test_an_unknown_method_raises_an_error():
    with pytest.raises(BadInputError, match=r"nuclei, macenko, none.*'magic'"):
        estimate_stain_of_image(stained(SCANNERS["red"]), config=StainConfig(method="magic"))


def test_an_estimate_round_trips_through_json():
    stain = estimate_stain_of_image(stained(SCANNERS["red"]))
    again = stain_from_dict(json.loads(json.dumps(stain_to_dict(stain))))
    assert stain_to_dict(again) == stain_to_dict(stain)


@pytest.mark.parametrize(
    "change", [{"format": 2}, {"matrix": [[1, 2]]}, {"more": 1}, {"scale": ["a", "b"]}]
)
def test_stored_stains_of_another_shape_raise_an_error(change):
    with pytest.raises(BadInputError, match="stain estimate"):
        stain_from_dict({**stain_to_dict(load_target()), **change})


def test_normalisation_reduces_the_difference_of_two_scanners():
    looks = [
        stained(SCANNERS["red"], strength=(0.8, 0.7)),
        stained(SCANNERS["purple"], strength=(1.2, 1.3), white=(228, 205, 220)),
    ]
    target = load_target()
    out = [normalise(i, estimate_stain_of_image(i), target).astype(float) for i in looks]
    before = np.abs(looks[0].astype(float) - looks[1]).mean()
    assert np.abs(out[0] - out[1]).mean() < 0.25 * before


def test_quantiles_of_a_normalised_slide_equal_those_of_the_target():
    image = stained(SCANNERS["red"], strength=(0.9, 0.9))
    target = load_target()
    out = normalise(image, estimate_stain_of_image(image), target)
    tissue = out[:, 90:].reshape(-1, 3)
    od = np.log10((np.array(target.white) + 1) / (tissue + 1.0))
    haematoxylin, eosin = (od @ np.linalg.pinv(target.matrix)).T
    assert np.quantile(haematoxylin, 0.9) == pytest.approx(target.quantiles[0, 19], abs=0.05)
    assert np.quantile(eosin, 0.5) == pytest.approx(target.quantiles[1, 11], abs=0.05)
    assert np.quantile(eosin, 0.9) == pytest.approx(target.quantiles[1, 19], abs=0.05)


def test_normalised_glass_stays_empty():
    image = stained(SCANNERS["red"])
    out = normalise(image, estimate_stain_of_image(image), load_target())
    glass = np.abs(out[:, :70].astype(float) - 245)
    assert glass.mean() < 5 and np.percentile(glass, 99.5) < 18


def test_the_colour_table_agrees_with_the_exact_map():
    image = stained(SCANNERS["purple"])
    stain, target = estimate_stain_of_image(image), load_target()
    error = np.abs(normalise(image, stain, target) - normalise_exactly(image, stain, target))
    assert error.mean() < 1.0 and np.percentile(error, 99) < 5


def test_the_target_is_nearly_unchanged_by_normalisation():
    target = load_target()
    image = stained(target.matrix)
    assert np.abs(normalise(image, target, target).astype(float) - image).mean() < 3


def test_patches_of_a_source_are_normalised_one_by_one():
    image = stained(SCANNERS["red"])
    stain, target = estimate_stain_of_image(image), load_target()
    patches = NormalisedPatches(ImagePatches(image, downsample=1.0), stain, target)
    expected = normalise(image[100:324, 80:304], stain, target)
    assert np.array_equal(patches.read((80, 100), 224), expected)


def test_a_grey_patch_raises_an_error():
    with pytest.raises(ShapeError, match=r"expected \(H, W, 3\) uint8"):
        normalise(np.zeros((8, 8), np.uint8), load_target(), load_target())


def test_the_target_is_written_by_a_command(tmp_path, capsys):
    Image.fromarray(stained(SCANNERS["red"])).save(tmp_path / "slide.png")
    out = tmp_path / "target.py"
    assert main([str(tmp_path / "slide.png"), "--out", str(out)]) == 0
    names: dict = {}
    exec(out.read_text(), names)
    assert stain_from_dict(names["TARGET"]).method == "nuclei"
    Image.fromarray(np.full((300, 300, 3), 245, np.uint8)).save(tmp_path / "white.png")
    assert main([str(tmp_path / "white.png"), "--out", str(out)]) == 2
    assert "cannot be the target slide: blank" in capsys.readouterr().err


@pytest.mark.slow
def test_real_slides_are_classified(tessera_data):
    folder = tessera_data / "histology"
    methods = {}
    for name in (
        "slides/cmu-1-small-region.svs",
        "slides/fluorescence-dapi.ndpi",
        "stain/lung-multistain/29-041-Izd2-w35-He-les3.jpg",
        "stain/lung-multistain/29-041-Izd2-w35-Ki67-7-les3.jpg",
        "stain/lung-multistain/29-041-Izd2-w35-CD31-3-les3.jpg",
    ):
        with open_slide(folder / name) as slide:
            methods[name] = estimate_stain(slide).method
    assert list(methods.values()) == ["nuclei", "none", "nuclei", "none", "none"]
