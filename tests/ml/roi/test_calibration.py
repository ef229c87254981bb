"""Calibration of distances: quantiles, file and fitting."""

from __future__ import annotations

import json
import math
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from ml.cli import main
from ml.errors import BadInputError, CorruptFileError, ShapeError
from ml.files import WEIGHTS_FOLDER
from ml.imaging.slides.slide import open_slide
from ml.roi.calibration import (
    PROBABILITIES,
    Calibration,
    calibration_of,
    calibration_path,
    fit_calibration,
    null_distances,
    random_tissue_regions,
    read_calibration,
    visible_squares,
    write_calibration,
)
from ml.roi.load import load_encoder
from ml.roi.weights import read_graph_encoder
from ml.training.roi.calibration import parse_sources


@pytest.fixture
def calibration():
    return Calibration.from_quantiles([0.01, 0.05, 0.5, 0.99], [0.5, 1.0, 2.0, 3.0])


def test_a_p_value_is_the_share_of_unrelated_pairs_as_close(calibration):
    assert calibration.p_value(1.0) == pytest.approx(0.05)
    assert calibration.p_value(1.5) == pytest.approx(0.275)
    assert calibration.p_value(0.25) == pytest.approx(0.005)
    assert calibration.p_value(0.0) == 0.0 and calibration.p_value(9.0) == 1.0
    assert math.isnan(calibration.p_value(math.nan))


def test_a_distance_common_among_unrelated_tissue_is_not_close(calibration):
    assert not calibration.is_nothing_close(0.9)
    assert calibration.is_nothing_close(1.2)
    assert not calibration.is_nothing_close(1.2, level=0.2)
    assert calibration.is_nothing_close(math.nan)


def test_the_threshold_falls_with_the_number_of_regions(calibration):
    """The false positive rate does not depend on the number of regions."""
    rng = np.random.default_rng(0)
    null = rng.normal(10, 1, 200_000)
    fitted = Calibration.from_quantiles(PROBABILITIES, np.quantile(null, PROBABILITIES))
    for searched, draws in ((1, 20_000), (30, 5_000), (300, 2_000)):
        nearest = rng.normal(10, 1, (draws, searched)).min(axis=1)
        called = np.mean([not fitted.is_nothing_close(d, searched) for d in nearest])
        assert 0.02 < called < 0.07, searched
    assert calibration.nearest_p_value(1.0, 2) == pytest.approx(1 - 0.95**2)
    assert calibration.nearest_p_value(9.0, 3) == 1.0
    assert math.isnan(calibration.nearest_p_value(math.nan, 3))
    with pytest.raises(BadInputError, match=r"searched: .*0"):
        calibration.nearest_p_value(1.0, 0)


def test_the_tail_is_extrapolated_exponentially():
    """Quantiles that are linear in the logarithm, which the tail continues."""
    p = [0.001, 0.01, 0.1]
    straight = Calibration.from_quantiles(p, [1.0, 2.0, 3.0])
    assert straight.p_value(0.5) == pytest.approx(0.001 * 10**-0.5)
    assert straight.p_value(1.0) == pytest.approx(0.001)
    flat = Calibration.from_quantiles(p, [1.0, 1.0, 3.0])
    assert flat.p_value(0.5) == pytest.approx(0.0005)


@pytest.mark.parametrize(
    ("probabilities", "distances"),
    [
        ([0.1], [1.0]),
        ([0.1, 0.5], [1.0]),
        ([0.5, 0.1], [1.0, 2.0]),
        ([0.1, 0.5], [2.0, 1.0]),
        ([0.0, 0.5], [1.0, 2.0]),
        ([0.1, 0.5], [1.0, math.nan]),
    ],
)
def test_invalid_quantiles_raise_an_error(probabilities, distances):
    with pytest.raises(ShapeError, match="quantiles"):
        Calibration.from_quantiles(probabilities, distances)


def test_a_calibration_is_next_to_the_weights_and_found_by_its_hash(tmp_path):
    stored = Calibration.from_quantiles([0.1, 0.5], [1, 2], config_hash="abc", groups=["a", "b"])
    path = calibration_path(tmp_path / "my.safetensors")
    write_calibration(path, stored)
    assert path.name == "my.calibration.json"
    assert read_calibration(path) == stored == calibration_of("abc", tmp_path)
    assert calibration_of("another", tmp_path) is None


def test_a_damaged_file_raises_an_error(tmp_path):
    (tmp_path / "x.calibration.json").write_text(json.dumps({"probabilities": [1]}))
    with pytest.raises(CorruptFileError, match=r"x\.calibration\.json"):
        read_calibration(tmp_path / "x.calibration.json")


def test_only_pairs_of_different_groups_are_unrelated():
    a, b = np.array([[0.0], [100.0]], np.float32), np.array([[1.0]], np.float32)
    assert null_distances([a, b]).tolist() == [1.0, 99.0]


class Brightness:
    """Simulated encoder: the vector is the mean colour."""

    config_hash = "brightness"
    kind = "histology"

    def embed_region(self, slide, polygon_l0, mpp=None):
        left, top, right, bottom = polygon_l0.bounds
        pixels = slide.read_scaled((left, top), (right - left, bottom - top), 1.0)
        return SimpleNamespace(vector=pixels.reshape(-1, 3).mean(axis=0).astype(np.float32))

    def embed_image(self, image, polygon=None):
        left, top, right, bottom = (int(v) for v in polygon.bounds)
        pixels = image[top:bottom, left:right]
        return SimpleNamespace(vector=pixels.reshape(-1, 3).mean(axis=0).astype(np.float32))


class SceneBrightness(Brightness):
    """The same for frames, with regions inside the field of view."""

    kind = "endoscopy"


@pytest.fixture
def groups(tmp_path):
    rng, out = np.random.default_rng(0), {}
    for name, shade in (("dark", 40), ("light", 140)):
        image = np.clip(rng.normal(shade, 20, (300, 300, 3)), 0, 255).astype(np.uint8)
        Image.fromarray(image).save(tmp_path / f"{name}.png")
        out[name] = [tmp_path / f"{name}.png"]
    return out


def test_fitting_is_deterministic_and_uses_pairs_between_groups(groups):
    first = fit_calibration(Brightness(), groups, regions_per_group=6)
    assert first == fit_calibration(Brightness(), groups, regions_per_group=6)
    assert first.pairs == 36 and first.regions == 12 and first.config_hash == "brightness"
    assert 150 < first.distances[0] <= first.distances[-1] < 190  # a difference of 100 per channel


def test_a_white_slide_has_no_regions(tmp_path, groups):
    Image.fromarray(np.full((300, 300, 3), 255, np.uint8)).save(tmp_path / "white.png")
    with open_slide(tmp_path / "white.png") as slide:
        assert not list(random_tissue_regions(slide, 3, np.random.default_rng(0)))
    with pytest.raises(BadInputError, match="'white'"):
        fit_calibration(Brightness(), {**groups, "white": [tmp_path / "white.png"]})


def scope_image(shade):
    image = np.full((200, 320, 3), shade, np.uint8)
    y, x = np.mgrid[:200, :320]
    image[np.hypot(x - 160, y - 100) > 90] = 0
    return image


def test_squares_are_inside_the_field_of_view_and_the_window():
    drawn = list(
        islice(
            visible_squares(scope_image(150), np.random.default_rng(0), (0.5, 0.25, 0.8, 1.0)),
            50,
        )
    )
    assert len(drawn) == 50
    for square in drawn:
        left, top, right, bottom = square.bounds
        assert left >= 160 and top >= 50 and right <= 256
        assert all(np.hypot(x - 160, y - 100) <= 92 for x in (left, right) for y in (top, bottom))


def test_a_window_outside_the_field_of_view_gives_no_squares():
    corner = (0.0, 0.0, 0.1, 0.1)
    drawn = visible_squares(scope_image(150), np.random.default_rng(0), corner)
    assert list(drawn) == []


def test_regions_of_frames_exclude_the_dark_border(tmp_path):
    groups = {}
    for name, shade in (("dim", 90), ("bright", 190)):
        Image.fromarray(scope_image(shade)).save(tmp_path / f"{name}.png")
        groups[name] = [tmp_path / f"{name}.png"]
    result = fit_calibration(SceneBrightness(), groups, regions_per_group=5)
    assert result.pairs == 25
    # The views differ by 100 per channel; the black border is excluded.
    assert result.distances == pytest.approx([100 * 3**0.5] * len(result.distances))


def test_a_single_group_raises_an_error(groups):
    with pytest.raises(BadInputError, match=r"groups .*got 1"):
        fit_calibration(Brightness(), {"dark": groups["dark"]})


def test_sources_are_files_or_folders(groups, tmp_path):
    sources = parse_sources([f"all={tmp_path}", f"one={groups['dark'][0]}"])
    assert [len(files) for files in sources.values()] == [2, 1]
    for words, message in (("x", "expected NAME=PATH"), ("x=nowhere.svs", "is not there")):
        with pytest.raises(BadInputError, match=message):
            parse_sources([words])


def test_the_command_writes_the_calibration_next_to_the_weights(tmp_path, capsys):
    rng = np.random.default_rng(0)
    for name, spread in (("a", 20), ("b", 60)):
        image = np.clip(rng.normal((170, 110, 160), spread, (500, 500, 3)), 0, 255)
        Image.fromarray(image.astype(np.uint8)).save(tmp_path / f"{name}.png")
    weights = tmp_path / "mine.safetensors"
    weights.write_bytes((WEIGHTS_FOLDER / "roi-default.safetensors").read_bytes())
    words = ["train", "calibration", str(weights), "--regions", "5", "--groups"]
    assert main([*words, f"a={tmp_path / 'a.png'}", f"b={tmp_path / 'b.png'}"]) == 0
    assert "unrelated_pairs: 25" in capsys.readouterr().out
    stored = read_calibration(tmp_path / "mine.calibration.json")
    assert stored.config_hash == read_graph_encoder(weights).config_hash
    assert main([*words, f"a={tmp_path / 'a.png'}"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("name", ["roi-default", "roi-endoscopy"])
def test_the_shipped_calibration_belongs_to_the_shipped_encoder(name: str) -> None:
    """After a change of weights or configuration run `python -m ml train calibration`."""
    shipped = read_calibration(WEIGHTS_FOLDER / f"{name}.calibration.json")
    assert shipped.config_hash == load_encoder(name).config_hash


def test_an_invalid_window_raises_an_error(tmp_path, capsys):
    words = ["train", "calibration", "x.safetensors", "--groups", "a=b", "--window"]
    assert main([*words, "0.5", "0", "0.4", "1"]) == 2
    assert "--window: expected 0 <= left < right <= 1" in capsys.readouterr().err
