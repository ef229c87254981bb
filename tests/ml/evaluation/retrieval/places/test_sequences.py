"""Places of a sequence with structure from motion."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from ml.errors import BadInputError
from ml.evaluation.retrieval.places.sequences import SequenceConfig, sequence_scene
from ml.training.common.sequence import read_sequence
from tests.ml.evaluation.retrieval.places.conftest import FRAMES, HEIGHT, STEP_PX, WIDTH

CONFIG = SequenceConfig(step=4, spacing_share=0.3)


@pytest.fixture(scope="module")
def scene(sequence):
    return sequence_scene(read_sequence(sequence), CONFIG)


def test_a_place_moves_with_the_plane(scene):
    first = {}
    for region in scene.regions:
        known = first.setdefault(region.place, region)
        shift = STEP_PX * (known.frame - region.frame)
        assert np.allclose(region.outline, known.outline + np.array([shift, 0]), atol=0.05)
    assert len(first) > 5


def test_places_are_inside_their_frames_and_far_from_each_other(scene):
    for region in scene.regions:
        assert region.outline.min() >= 0
        assert (region.outline.max(axis=0) <= (WIDTH, HEIGHT)).all()
        assert np.ptp(region.outline, axis=0) == pytest.approx([0.115 * WIDTH] * 2, abs=0.1)
    centres = {}
    for region in scene.regions:
        centre = region.outline.mean(axis=0) + np.array([STEP_PX * region.frame, 0])
        centres.setdefault(region.place, centre)
    xy = np.array(list(centres.values()))
    away = np.linalg.norm(xy[:, None] - xy[None], axis=2) + 1e9 * np.eye(len(xy))
    assert away.min() > 0.5 * 0.3 * WIDTH


def test_every_fourth_frame_is_searched_and_every_place_seen_twice(scene):
    assert {region.frame for region in scene.regions} == set(range(0, FRAMES, 4))
    assert (np.bincount([region.place for region in scene.regions]) >= 2).all()
    assert (scene.truth, scene.name, len(scene.frames)) == ("sfm", "sfm", FRAMES)


def test_places_are_inside_the_mask(sequence):
    mask = np.ones((HEIGHT, WIDTH), np.bool_)
    mask[:, : WIDTH // 2] = False
    masked = dataclasses.replace(read_sequence(sequence), mask=mask)
    scene = sequence_scene(masked, CONFIG)
    assert min(region.outline[:, 0].min() for region in scene.regions) >= WIDTH / 2


def test_without_points_or_places_a_sequence_raises_an_error(sequence):
    known = read_sequence(sequence)
    bare = dataclasses.replace(known, points=np.zeros((0, 3)), seen=np.zeros((0, 2), np.int64))
    with pytest.raises(BadInputError, match="scene points"):
        sequence_scene(bare, CONFIG)
    with pytest.raises(BadInputError, match="two frames"):
        sequence_scene(known, dataclasses.replace(CONFIG, min_points=10_000))
