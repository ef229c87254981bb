from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from shapely.geometry import MultiPolygon, Polygon, box
from skimage.color import rgb2hed

from ml.errors import BadInputError, CancelledError, EmptyRegionError, TooLargeError
from ml.imaging.samples.packaged import packaged_image
from ml.imaging.slides.pyramids import write_pyramid
from ml.imaging.slides.slide import open_slide
from ml.quantification.config import QuantificationConfig, Staining
from ml.quantification.measure import UnknownPixelSizeError, quantify_region
from ml.quantification.result import Quantification
from ml.quantification.stains import channel_densities, unmixed
from tests.ml.quantification.synthetic import Nucleus, Pixels, section

MPP = (0.5, 0.5)
BY_EYE_STROMA = (
    "228,309 224,301 240,322 193,325 206,335 171,328 188,358 194,381 223,356 226,379 228,392"
    " 238,389 219,396 181,393"
)
BY_EYE_GLAND = (
    "278,335 267,350 291,345 302,342 309,340 322,340 335,345 314,355 326,359 343,360 360,354"
    " 365,367 308,368 331,376 345,375 271,372 286,360 370,386 348,393 268,394 269,410 371,404"
    " 360,411 273,430 350,428 370,435 352,452 365,461 288,452 301,443 302,465 317,462 328,472"
    " 343,470 357,473 350,488 334,495"
)


def measured(
    pixels: Pixels, polygon: Any = None, *, mpp: Any = MPP, tile_px: int = 1024, **config: Any
) -> Quantification:
    return quantify_region(
        pixels,
        polygon,
        size_l0=pixels.size,
        mpp=mpp,
        config=QuantificationConfig(**config),
        tile_px=tile_px,
    )


def grid_of(
    columns: int, rows: int, *, step: float = 40, second: tuple[float, ...] = (0,)
) -> list[Nucleus]:
    places = [(step * (x + 0.5), step * (y + 0.5)) for y in range(rows) for x in range(columns)]
    return [Nucleus(x, y, second=second[n % len(second)]) for n, (x, y) in enumerate(places)]


def test_separate_nuclei_are_counted_and_their_density_is_per_square_millimetre() -> None:
    measurement = measured(Pixels(section(grid_of(10, 5), (400, 200))))
    assert measurement.nucleus_count == 50
    assert measurement.area_mm2 == pytest.approx(0.2 * 0.1)
    assert measurement.nuclei_per_mm2 == pytest.approx(50 / 0.02)


def test_nuclei_have_the_drawn_position_and_radius() -> None:
    measurement = measured(Pixels(section([Nucleus(101.5, 63.5, radius_px=9)], (200, 128))))
    assert measurement.nuclei is not None
    assert measurement.nuclei.xy_l0[0] == pytest.approx((101.5, 63.5), abs=0.2)
    assert measurement.nuclei.radius_um[0] == pytest.approx(4.5, rel=0.15)


@pytest.mark.parametrize("radius_px", [6, 8, 11, 14])
def test_touching_nuclei_are_separated(radius_px: float) -> None:
    pair = [Nucleus(80, 80, radius_px), Nucleus(80 + 2 * radius_px, 80, radius_px)]
    assert measured(Pixels(section(pair, (200, 160)))).nucleus_count == 2


@pytest.mark.parametrize("radius_px", [5, 8, 12, 18])
def test_a_nucleus_of_any_size_is_counted_once(radius_px: float) -> None:
    image = section([Nucleus(80, 80, radius_px)], (160, 160), noise=4)
    assert measured(Pixels(image)).nucleus_count == 1


@pytest.mark.parametrize("background", [0.0, 0.08])
@pytest.mark.parametrize("staining", list(Staining))
def test_tissue_without_nuclei_has_a_count_of_zero(background: float, staining: Staining) -> None:
    image = section([], (300, 300), background=background, noise=3)
    measurement = measured(Pixels(image), staining=staining)
    assert (measurement.nucleus_count, measurement.nuclei_per_mm2) == (0, 0)
    assert measurement.positive_percent is None and measurement.h_score is None


def test_bins_follow_the_mean_dab_and_the_h_score_is_their_weighted_percentage() -> None:
    nuclei = grid_of(10, 4, second=(0.0, 0.3, 0.5, 0.9, 0.0))
    measurement = measured(Pixels(section(nuclei, (400, 160))))
    assert measurement.bin_counts == (16, 8, 8, 8)
    assert measurement.positive_percent == 60
    assert measurement.h_score == pytest.approx(20 * 1 + 20 * 2 + 20 * 3)


def test_all_nuclei_can_be_positive_even_without_counterstain() -> None:
    places = grid_of(6, 6)
    nuclei = [Nucleus(n.x, n.y, haematoxylin=0.0, second=0.8) for n in places]
    measurement = measured(Pixels(section(nuclei, (240, 240))))
    assert measurement.bin_counts == (0, 0, 0, 36)
    assert measurement.h_score == 300


def test_thresholds_of_the_lab_decide_positivity() -> None:
    image = section(grid_of(4, 4, second=(0.3,)), (160, 160))
    assert measured(Pixels(image)).bin_counts == (0, 16, 0, 0)
    strict = measured(Pixels(image), weak_od=0.5, moderate_od=0.6, strong_od=0.7)
    assert strict.bin_counts == (16, 0, 0, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tile_px", "source"), [(96, "drawn"), (128, "drawn"), (333, "photographed")]
)
def test_measures_do_not_depend_on_the_tiles(tile_px: int, source: str) -> None:
    if source == "drawn":  # nuclei with centres on the borders of tiles of 96 and 128
        image = section(
            [Nucleus(32 * x, 32 * y) for x in range(1, 12) for y in range(1, 12)], (384,) * 2
        )
    else:
        image = packaged_image("ihc.png")
    outline = Polygon([(5, 9), (370, 20), (350, 371), (180, 300), (11, 380)])
    measurement = measured(Pixels(image), outline)
    tiled = Pixels(image)
    many = measured(tiled, outline, tile_px=tile_px)
    assert measurement.nuclei is not None and many.nuclei is not None
    order = [np.lexsort(table.xy_l0.T) for table in (measurement.nuclei, many.nuclei)]
    assert np.allclose(measurement.nuclei.xy_l0[order[0]], many.nuclei.xy_l0[order[1]])
    assert measurement.bin_counts == many.bin_counts
    # the rim of an outline is filled to half a pixel, a little differently in another frame
    assert measurement.mean_od == pytest.approx(many.mean_od, rel=1e-3)
    assert measurement.positive_area_percent == pytest.approx(many.positive_area_percent, rel=1e-3)
    assert tiled.largest <= (tile_px + 2 * 96) ** 2


def test_nuclei_count_by_their_centroid_and_holes_are_left_out() -> None:
    image = section(grid_of(10, 10), (400, 400))
    left = box(0, 0, 100, 400)  # the centroids at 20 and 60 are inside, those at 100 are not
    ring = Polygon(box(0, 0, 400, 400).exterior, [box(120, 120, 280, 280).exterior])
    assert measured(Pixels(image), left.buffer(-0.5)).nucleus_count == 20
    assert measured(Pixels(image), ring).nucleus_count == 100 - 16
    parts = MultiPolygon([box(0, 0, 80, 80), box(320, 320, 400, 400)])
    measurement = measured(Pixels(image), parts)
    assert measurement.nucleus_count == 8
    assert measurement.area_mm2 == pytest.approx(2 * 0.04**2)


def test_positive_area_is_a_share_of_the_tissue_and_glass_is_not_tissue() -> None:
    image = np.full((200, 400, 3), 245, np.uint8)
    image[:, :300] = section([], (300, 200), background=0.3)
    image[:, 200:300] = section([Nucleus(50, 100, 900, second=0.5)], (100, 200))
    measurement = measured(Pixels(image), staining=Staining.DAB)
    assert measurement.tissue_mm2 == pytest.approx(0.75 * measurement.area_mm2, rel=0.01)
    assert measurement.positive_area_percent == pytest.approx(100 / 3, abs=0.5)
    assert measurement.mean_od["dab"] == pytest.approx(0.5 / 3, abs=0.01)
    assert measurement.mean_od["haematoxylin"] == pytest.approx((2 * 0.3 + 0.5) / 3, abs=0.01)
    assert (
        measurement.bin_counts is None and measurement.h_score is None
    )  # the marker is not in nuclei


def test_a_region_of_glass_has_no_tissue_and_no_shares() -> None:
    measurement = measured(Pixels(np.full((100, 100, 3), 250, np.uint8)))
    assert measurement.tissue_mm2 == 0 and measurement.nucleus_count == 0
    assert measurement.positive_area_percent is None
    assert measurement.mean_od == {"haematoxylin": 0, "dab": 0}


def test_tinted_glass_is_not_tissue() -> None:
    """A bare half of a slide has the tint of pale tissue."""
    image = section([], (400, 200), background=0.12, staining=Staining.HE, noise=2)
    inner = box(40, 40, 360, 160)  # white outside of the image is structure
    bare = measured(Pixels(image), inner, staining=Staining.HE)
    assert bare.tissue_mm2 == 0
    image[:, :200] = section(grid_of(5, 5), (200, 200), background=0.12, staining=Staining.HE)
    half = measured(Pixels(image), inner, staining=Staining.HE)
    assert half.tissue_mm2 == pytest.approx(half.area_mm2 / 2, rel=0.1)


def test_a_section_of_haematoxylin_and_eosin_has_no_positive_nuclei() -> None:
    image = section(grid_of(5, 5), (200, 200), staining=Staining.HE)
    measurement = measured(Pixels(image), staining=Staining.HE)
    assert measurement.nucleus_count == 25
    assert set(measurement.mean_od) == {"haematoxylin", "eosin"}
    assert measurement.positive_area_percent is None and measurement.bin_counts is None


def test_unmixing_equals_hand_worked_densities() -> None:
    # DAB alone of density 1: 256 * 10^-(0.268, 0.570, 0.776 at unit length) - 1
    pure = np.array([[[137, 68, 42]]], np.uint8)
    stains = unmixed(channel_densities(pure), Staining.DAB)[0, 0]
    assert stains == pytest.approx((0, 1), abs=0.01)
    assert unmixed(channel_densities(np.full((1, 1, 3), 255, np.uint8)), Staining.HE).max() == 0


def test_dab_agrees_with_scikit_image() -> None:
    image = packaged_image("ihc.png")
    densities = unmixed(channel_densities(image), Staining.DAB)[..., 1].ravel()
    reference = rgb2hed(image)[..., 2].ravel()
    assert np.corrcoef(densities, reference)[0, 1] > 0.98


@pytest.mark.parametrize(
    ("by_eye", "bounds", "found_of_them", "false_of_found"),
    [
        (BY_EYE_STROMA, (165, 300, 255, 400), 0.8, 0.2),
        (BY_EYE_GLAND, (258, 325, 378, 500), 0.7, 0.25),
    ],
    ids=["stroma", "gland"],
)
def test_nuclei_of_a_real_section_agree_with_centres_marked_by_hand(
    by_eye: str,
    bounds: tuple[int, int, int, int],
    found_of_them: float,
    false_of_found: float,
) -> None:
    """The picture comes with no counts; these centres were marked by eye in two windows, on an
    enlargement of eight, and 0.5 microns per pixel is assumed."""
    measurement = measured(Pixels(packaged_image("ihc.png")), staining=Staining.DAB)
    assert measurement.nuclei is not None
    xy = measurement.nuclei.xy_l0
    left, top, right, bottom = bounds
    xy = xy[(xy >= (left, top)).all(axis=1) & (xy < (right, bottom)).all(axis=1)]
    marked = np.array([place.split(",") for place in by_eye.split()], np.float64)
    distance = cdist(marked, xy)
    pairs = linear_sum_assignment(np.minimum(distance, 20))
    hits = int((distance[pairs] <= 7).sum())
    assert hits >= found_of_them * len(marked)
    assert len(xy) - hits <= false_of_found * len(xy)


def test_the_count_does_not_depend_on_the_pixel_size(tmp_path: Any) -> None:
    """A pyramid of 0.25 microns is read at 0.5; the sizes of nuclei remain those in microns."""
    nuclei = [Nucleus(2 * n.x, 2 * n.y, radius_px=16) for n in grid_of(8, 6)]
    path = tmp_path / "slide.tif"
    write_pyramid(section(nuclei, (640, 480)), path)
    with open_slide(path) as slide:
        outcome = quantify_region(slide, None, size_l0=(640, 480), mpp=(0.25, 0.25), tile_px=128)
    assert outcome.nucleus_count == 48
    assert outcome.nuclei is not None
    assert outcome.nuclei.radius_um == pytest.approx(np.full(48, 4.0), rel=0.15)
    assert outcome.nuclei.xy_l0.max() == pytest.approx(600, abs=1)


def test_pixels_too_coarse_for_nuclei_give_area_and_means_only() -> None:
    image = section([Nucleus(50, 50, 900, second=0.5)], (100, 100))
    measurement = measured(Pixels(image), mpp=(2.0, 2.0))
    assert measurement.nuclei is None and measurement.nuclei_missing == "too-coarse"
    assert measurement.nucleus_count is None and measurement.nuclei_per_mm2 is None
    assert measurement.positive_area_percent == pytest.approx(100)
    assert measurement.area_mm2 == pytest.approx(0.04)
    assert measurement.working_mpp == 2.0


@pytest.mark.parametrize("mpp", [(None, None), (0.5, None), (0.0, 0.5), (float("nan"), 0.5)])
def test_an_unknown_pixel_size_raises_an_error(mpp: Any) -> None:
    with pytest.raises(UnknownPixelSizeError, match="microns per pixel"):
        measured(Pixels(section([], (10, 10))), mpp=mpp)


def test_a_region_above_the_limit_raises_an_error_before_pixels_are_read() -> None:
    with pytest.raises(TooLargeError, match="25 mm²"):
        quantify_region(None, None, size_l0=(20_000, 20_000), mpp=MPP)  # type: ignore[arg-type]


def test_a_region_outside_the_image_raises_an_error() -> None:
    with pytest.raises(EmptyRegionError):
        measured(Pixels(section([], (10, 10))), box(20, 20, 30, 30))


def test_progress_counts_tiles_and_can_cancel() -> None:
    calls: list[tuple[int, int]] = []

    def progress(done: int, total: int, phase: str) -> None:
        calls.append((done, total))
        if done == 2:
            raise CancelledError

    pixels = Pixels(section([], (256, 256)))
    with pytest.raises(CancelledError):
        quantify_region(pixels, None, size_l0=pixels.size, mpp=MPP, progress=progress, tile_px=128)
    assert calls == [(0, 4), (1, 4), (2, 4)]


@pytest.mark.parametrize(
    "values",
    [
        {"weak_od": 0.5, "moderate_od": 0.4},
        {"strong_od": float("inf")},
        {"nucleus_od": 0.0},
        {"min_area_um2": 500.0},
    ],
)
def test_contradictory_thresholds_raise_an_error(values: dict[str, float]) -> None:
    with pytest.raises(BadInputError, match="expected"):
        QuantificationConfig(**values)  # type: ignore[arg-type]
