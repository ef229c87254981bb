"""Warped pairs, and the images they are made of."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from ml.errors import BadInputError
from ml.evaluation.common.descriptors import load_descriptors, split_names
from ml.evaluation.common.images import (
    EvaluationImage,
    consecutive_pairs,
    read_images,
    scene_of,
    unrelated_pairs,
)
from ml.evaluation.matching.homographies import real_homographies
from ml.evaluation.matching.pairs import (
    CORE_FAMILIES,
    DARK_FAMILY,
    SMOOTH_FAMILY,
    SMOOTH_LIGHT,
    VALUES,
    WIDE_FAMILIES,
    make_pairs,
    motion_blur_kernel,
)
from ml.imaging.samples.packaged import packaged_image


def _vessels(x: int = 400) -> EvaluationImage:
    rgb = np.ascontiguousarray(packaged_image("retina.jpg")[400:600, x : x + 240])
    return EvaluationImage(f"retina/{x}.png", rgb, None, f"retina/{x}")


def test_pairs_cover_every_value_of_every_family_with_true_maps() -> None:
    pairs = make_pairs([_vessels()])
    families = (*CORE_FAMILIES, *WIDE_FAMILIES)
    assert [(p.family, p.value) for p in pairs] == [(f, v) for f in families for v in VALUES[f]]
    for pair in pairs:
        again = cv2.warpPerspective(pair.a, pair.H_b_from_a, (240, 200))
        inner = (slice(60, 140), slice(60, 180))
        assert np.abs(again[inner].astype(float) - pair.b[inner]).mean() < 8


def test_limited_values_per_family_vary_between_images() -> None:
    images = [_vessels(300 + 10 * i) for i in range(3)]
    pairs = make_pairs(images, families=("rotation",), per_family=1)
    assert [pair.value for pair in pairs] == [5.0, 10.0, 15.0]
    again = make_pairs(images, families=("rotation",), per_family=1)
    assert all(np.array_equal(a.b, b.b) for a, b in zip(pairs, again, strict=True))


def test_dark_pairs_are_dimmed_and_share_a_pattern_that_does_not_move() -> None:
    image = _vessels()
    for pair in make_pairs([image], families=(DARK_FAMILY,)):
        warped = cv2.warpPerspective(image.rgb, pair.H_b_from_a, (240, 200))
        inner = (slice(60, 140), slice(60, 180))
        rest_a = pair.a[inner] - pair.value * image.rgb[inner]
        rest_b = pair.b[inner] - pair.value * warped[inner]
        assert np.abs([rest_a.mean(), rest_b.mean()]).max() < 0.5
        assert np.corrcoef(rest_a.ravel(), rest_b.ravel())[0, 1] > 0.3


def test_smooth_pairs_are_dimmed_and_blurred() -> None:
    image = _vessels()
    for pair in make_pairs([image], families=(SMOOTH_FAMILY,)):
        warped = cv2.warpPerspective(image.rgb, pair.H_b_from_a, (240, 200))
        for view, source in ((pair.a, image.rgb), (pair.b, warped)):
            blurred = cv2.GaussianBlur(source.astype(np.float32), (0, 0), pair.value)
            rest = (view - SMOOTH_LIGHT * blurred)[60:140, 60:180]
            assert abs(rest.mean()) < 0.1
            assert rest.std() == pytest.approx(1.0, abs=0.1)


def test_masks_move_with_the_image() -> None:
    image = _vessels()
    mask = np.zeros((200, 240), bool)
    mask[50:150, 60:180] = True
    masked = EvaluationImage(image.name, image.rgb, mask, image.scene)
    (pair,) = make_pairs([masked], families=("translation",), per_family=1)
    dx, dy = pair.H_b_from_a[:2, 2].astype(int)
    assert pair.mask_b is not None
    np.testing.assert_array_equal(pair.mask_b, np.roll(mask, (dy, dx), axis=(0, 1)))


@pytest.mark.parametrize(("size_px", "angle_deg"), [(3, 0), (10, 0), (15, 45), (5, 90)])
def test_blur_kernels_are_centred_lines(size_px: int, angle_deg: float) -> None:
    kernel = motion_blur_kernel(size_px, angle_deg)
    assert kernel.sum() == pytest.approx(1.0, abs=1e-5)
    row, column = np.indices(kernel.shape) - kernel.shape[0] // 2
    assert abs((kernel * row).sum()) < 1e-4
    assert abs((kernel * column).sum()) < 1e-4
    along = column * np.cos(np.radians(angle_deg)) + row * np.sin(np.radians(angle_deg))
    # a line of n px has the variance (n - 1)^2 / 12, and the splat adds less than half a pixel
    spread = float((kernel * along**2).sum())
    assert abs(spread - (size_px - 1) ** 2 / 12) < 0.6


def test_homographies_of_real_frames_map_between_them() -> None:
    wall = packaged_image("retina.jpg")[300:780, 200:900]
    frames = [
        EvaluationImage("f", np.ascontiguousarray(wall[:, x : x + 600]), None, "f")
        for x in (0, 30, 60)
    ]
    blank = EvaluationImage("f", np.full((480, 600, 3), 90, np.uint8), None, "f")
    (result,) = real_homographies([(frames[0], frames[1]), (frames[1], blank)])
    np.testing.assert_allclose(result, [[1, 0, -0.05], [0, 1, 0], [0, 0, 1]], atol=2e-3)


def test_frames_of_a_folder_and_stills_of_an_operation_share_a_scene() -> None:
    assert scene_of(Path("/data/sinus-4584/00004584.jpg")) == "sinus-4584"
    assert scene_of(Path("/data/feto/frames/00851.jpg")) == "feto"
    assert scene_of(Path("/d/stills/00001-21711-frame-1.jpg")) == "stills/00001"
    assert scene_of(Path("/d/stills/Exp1_0200.jpg")) == "stills/Exp1"


def test_unrelated_pairs_are_of_two_scenes_without_duplicates() -> None:
    images = [_vessels(300), _vessels(500), _vessels(700), _vessels(300)]
    pairs = unrelated_pairs(images, count=99, seed=3)
    assert len(pairs) == 5
    assert all(a.scene != b.scene for a, b in pairs)


def test_images_are_taken_in_turn_from_folders_and_masks_are_skipped(tmp_path: Path) -> None:
    for name, count in (("a", 5), ("b", 1)):
        (tmp_path / name / "frames").mkdir(parents=True)
        for i in range(count):
            cv2.imwrite(str(tmp_path / name / "frames" / f"{i:03d}.png"), _vessels().rgb)
    mask = np.zeros((200, 240), np.uint8)
    mask[:, 120:] = 255
    cv2.imwrite(str(tmp_path / "a" / "mask.png"), mask)
    folders = [tmp_path / name / "frames" for name in ("a", "b")]
    images = read_images(folders, count=4, long_side_px=120)
    names = ["a/000.png", "b/000.png", "a/002.png", "a/004.png"]
    assert [image.name for image in images] == names
    assert images[0].rgb.shape == (100, 120, 3)
    assert images[0].mask is not None
    assert (images[0].mask.mean(), images[1].mask) == (0.5, None)
    frames = consecutive_pairs(folders, gaps=(2,), count=3, long_side_px=120)
    assert [(a.name, b.name) for a, b in frames] == [
        ("a/000.png", "a/002.png"),
        ("a/002.png", "a/004.png"),
    ]


def test_unreadable_input_raises_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="nowhere"):
        read_images([tmp_path / "nowhere"], count=1, long_side_px=100)
    (tmp_path / "x.png").write_bytes(b"")
    with pytest.raises(BadInputError, match=r"x\.png"):
        read_images([tmp_path], count=1, long_side_px=100)
    with pytest.raises(BadInputError, match=r"images: .*0"):
        read_images([tmp_path], count=0, long_side_px=100)


def test_names_are_split_at_commas_without_duplicates() -> None:
    assert split_names(["a,b", "b", " c ,"]) == ["a", "b", "c"]
    loaded, skipped = load_descriptors(["orb", "nonsense"])
    assert list(loaded) == ["orb"]
    assert "unknown descriptor 'nonsense'" in skipped["nonsense"]
