"""Registration by grey values on a device agrees with the processor's, which stands in for one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ml.geometry import transform_points
from ml.mosaic import MosaicConfig, blend, direct_pairs
from ml.mosaic import device_direct as on_device
from ml.mosaic.device_direct import align_on
from ml.mosaic.direct import align_views
from ml.mosaic.direct_views import direct_view
from ml.mosaic.loop_keyframes import LoopKeyframeStore
from ml.mosaic.loops import loops_by_overlap
from ml.mosaic.motion_model import motion_generators
from ml.mosaic.register import register_frames
from ml.mosaic.sources import ArraySource
from ml.mosaic.survey import measure_frames, survey_of
from ml.types import no_progress
from tests.ml.mosaic.test_direct import MASK, POINTS, _pose, _view

SHAPE = (240, 240)


@pytest.fixture(scope="module")
def pairs():
    """Related, unrelated, without anything to trust, and too far apart, from one start."""
    poses = [_pose(0, 0), _pose(6.3, -4.6), _pose(3, 2, 0.03, 2e-5), _pose(10, 9, -0.02)]
    poses.append(_pose(-300, -200))
    views = [direct_view(_view(pose, seed=i), MASK) for i, pose in enumerate(poses)]
    hidden = direct_view(_view(poses[0]), np.zeros_like(MASK))
    half = MASK.copy()
    half[:, :140] = False
    views.append(direct_view(_view(poses[1], seed=7), half))  # fewer px than the others
    far = np.array([[1, 0, 400.0], [0, 1, 0], [0, 0, 1]])
    found = [(view, views[0], np.eye(3)) for view in views[1:]]
    return [*found, (hidden, views[0], np.eye(3)), (views[0], views[1], far)]


@pytest.mark.parametrize(
    ("model", "only_finest"), [("translation", False), ("affine", True), ("homography", False)]
)
def test_motions_and_cells_are_those_of_the_processor(pairs, fast, model, only_finest):
    options = {"generators": motion_generators(model), "only_finest": only_finest}
    found = align_on(fast, pairs, work_shape=SHAPE, **options)
    wanted = [align_views(*pair, work_shape=SHAPE, **options) for pair in pairs]
    assert [one is None for one in found] == [one is None for one in wanted]
    assert wanted[-1] is None and wanted[-2] is None
    compared = 0
    for one, other in zip(found, wanted, strict=True):
        if one is None or other.ncc < 0.5:  # where nothing agrees, a motion means nothing
            continue
        moved, expected = (transform_points(w.matrix, POINTS) for w in (one, other))
        assert np.abs(moved - expected).max() < 0.05
        assert one.ncc == pytest.approx(other.ncc, abs=0.005)
        assert one.overlap == pytest.approx(other.overlap, abs=0.01)
        assert one.xy_a.shape == other.xy_a.shape
        assert np.abs(one.xy_a - other.xy_a).max() < 0.5
        assert np.median(np.hypot(*(one.xy_b - other.xy_b).T)) < 0.1
        ours, theirs = (w.root_info @ w.root_info.swapaxes(1, 2) for w in (one, other))
        assert np.abs(ours - theirs).max() < 0.15 * np.abs(theirs).max()
        compared += 1
    assert compared >= 2


def test_pairs_that_do_not_fit_are_halved_and_change_nothing(pairs, fast, monkeypatch):
    options = {"generators": motion_generators("affine"), "work_shape": SHAPE, "only_finest": True}
    whole = align_on(fast, pairs, **options)
    real, sizes = on_device._Batch, []

    def small(compute, batch, *args):
        sizes.append(len(batch))
        if len(batch) > 3:
            raise torch.OutOfMemoryError
        return real(compute, batch, *args)

    monkeypatch.setattr(on_device, "_Batch", small)
    for one, other in zip(align_on(fast, pairs, **options), whole, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert np.allclose(one.matrix, other.matrix, atol=1e-4)
    assert min(sizes) <= 3 and sum(size for size in sizes if size <= 3) == len(pairs)


def test_views_that_all_show_too_little_end_without_numbers(fast):
    view = direct_view(np.full(SHAPE, 90, np.float32), MASK)
    options = {"generators": motion_generators("homography"), "work_shape": SHAPE}
    found = align_on(fast, [(view, view, np.eye(3))], **options)
    wanted = align_views(view, view, np.eye(3), **options)
    assert (found[0] is None) == (wanted is None)
    assert align_on(fast, [], **options) == []


def test_a_sweep_is_registered_as_on_the_processor(sweep, fast, tmp_path, monkeypatch):
    source = ArraySource(sweep.frames[:7], 1)
    config = MosaicConfig(motion_model="homography", loop_keyframe_share=0.02)
    survey = survey_of(measure_frames(source, config=config, progress=no_progress), config=config)
    options = {"config": config, "progress": no_progress}
    found, loops = [], []
    for number, device in enumerate((None, fast)):
        for module in (direct_pairs, blend):
            monkeypatch.setattr(module, "accelerator", lambda device=device: device)
        assert (direct_pairs.pairs_at_once() > 1) == (device is not None)
        store = LoopKeyframeStore(tmp_path / str(number), cap=20)
        found.append(register_frames(source, survey, store=store, **options))
        placed = {key: sweep.truth[key] for key in store.positions}
        mask = np.ones_like(survey.mask)
        near = loops_by_overlap(store, placed, set(), mask=mask, model="homography", **options)
        loops.append(near)
    for processors, devices in ((found[0].links, found[1].links), loops):
        assert len(processors) > 3
        assert [(one.a, one.b) for one in processors] == [(one.a, one.b) for one in devices]
        for one, other in zip(processors, devices, strict=True):
            assert np.abs(one.matrix[:2, 2] - other.matrix[:2, 2]).max() < 0.15
            assert one.kind == other.kind and abs(one.inliers - other.inliers) <= 5
    assert found[0].keys == found[1].keys
