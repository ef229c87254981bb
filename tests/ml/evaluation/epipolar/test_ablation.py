"""The ablation: what is switched off is off, and the last row is what ships."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from ml.evaluation.epipolar.ablation import ablation, vit_matchers
from ml.evaluation.epipolar.scores import FrameCache, epipolar_rates
from ml.evaluation.epipolar.tables import _ablation
from ml.imaging.samples.packaged import packaged_image
from ml.keypoints import load_descriptor, match_images
from ml.keypoints.descriptors.vit import VitDescriptor
from ml.networks.vit_adapter import SMALL, SmallVitConfig, VitConfig, VitMatcher
from ml.training.common.sequence import CalibratedSequence
from ml.types import no_progress


@pytest.fixture
def cache(tmp_path: Path) -> FrameCache:
    """A camera that slides along a wall, 10 px to the right."""
    wall = packaged_image("retina.jpg")[300:540, 200:530]
    for i in range(2):
        frame = np.ascontiguousarray(wall[:, 10 * i : 10 * i + 320])
        cv2.imwrite(str(tmp_path / f"{i}.png"), frame[:, :, ::-1])
    poses = np.tile(np.eye(4), (2, 1, 1))
    poses[1, 0, 3] = 1.0
    camera = np.array([[500, 0, 160], [0, 500, 120], [0, 0, 1.0]])
    mask = np.zeros((240, 320), bool)
    mask[20:220, 20:300] = True
    frames = tuple(tmp_path / f"{i}.png" for i in range(2))
    nothing = np.zeros((0, 2), np.int64)
    sequence = CalibratedSequence("wall", frames, camera, poses, mask, np.zeros((0, 3)), nothing)
    return FrameCache(sequence, 200)


def test_the_last_stage_is_what_match_images_does(
    cache: FrameCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object) -> dict[str, object]:
        return {}

    monkeypatch.setattr("ml.evaluation.epipolar.ablation.vit_matchers", none)
    tables = ablation(cache, [(0, 1)], "orb", no_progress)
    last = tables["stages"]["+ completion by alignment"]
    mask = (cache.sequence.mask * 255).astype(np.uint8)  # type: ignore[operator]
    found = match_images(
        cache.frame(0), cache.frame(1), "orb", max_keypoints=200, mask_a=mask, mask_b=mask
    )
    assert last["matches"] == len(found) > 50
    error = epipolar_rates(cache.sequence.fundamental(0, 1), found)[0]
    assert last["epipolar_px"] == pytest.approx(error, abs=1e-4)
    assert tables["stages"]["mutual neighbours, ratio test"]["under_3px"] <= last["under_3px"]
    result = {"ablation": {"gap": 1} | tables, "compared_with": "orb"}
    text = "\n".join(_ablation(result))
    assert "Ablation at gap 1: the stages of `match_images` with `orb`" in text


def test_the_baseline_lacks_the_adaptation_and_the_descriptor_keeps_it(cache: FrameCache) -> None:
    small = SmallVitConfig(stem=(4, 8, 16), width=16, heads=2, depth=1)
    network = VitMatcher(VitConfig(backbone=SMALL, small=small, heads=2))
    descriptor = VitDescriptor("vit", network)
    rows = vit_matchers(cache, descriptor)
    assert len(rows) == 6
    assert len(descriptor.network.adapter) >= 1
    for matcher in rows.values():
        found = matcher(0, 1)
        for xy in (found.xy_a, found.xy_b):
            assert (xy >= 19.5).all()
            assert (xy <= [299.5, 219.5]).all()


def test_without_vit_the_stages_are_still_told(
    cache: FrameCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(name: str) -> object:
        if name == "vit":
            raise ImportError(name)
        return load_descriptor(name)

    monkeypatch.setattr("ml.evaluation.epipolar.ablation.load_descriptor", load)
    monkeypatch.setattr("ml.evaluation.epipolar.ablation.STAGES", {})
    tables = ablation(cache, [(0, 1)], "orb", no_progress)
    assert list(tables) == ["stages"]
